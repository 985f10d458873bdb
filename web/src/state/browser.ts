import type { InputDevice, MicrophoneEvents, OpenMicrophone } from '../audio/microphone';
import type { Player, PlayerEvents } from '../audio/player';
import type { Agents } from '../client/agents';
import type { ClientOptions, Session } from '../client/client';
import type { Engines } from '../client/engines';
import type { OpenSocket, Timers } from '../client/line';

/** What the page needs of the browser; a test hands in its own. */
export interface Browser {
  location: { protocol: string; host: string; search: string; hash: string };
  /** Puts the choice of turns into the page's address, in place of all that follows its path. */
  setAddress(search: string): void;
  storage: Pick<Storage, 'getItem' | 'setItem'> | null;
  /** Of this tab alone. */
  tabStorage: Pick<Storage, 'getItem' | 'setItem' | 'removeItem'> | null;
  /** Hands the user a file. */
  save(name: string, text: string): void;
  timers: Timers;
  /** Milliseconds of a clock that never jumps. */
  steady(): number;
  vibrate(): void;
  fetchEngines(token: string | null): Promise<Engines | 'sign in' | null>;
  fetchAgents(token: string | null): Promise<Agents | null>;
  openMicrophone(deviceId: string, events: MicrophoneEvents): Promise<OpenMicrophone>;
  inputDevices(): Promise<InputDevice[]>;
  openPlayer(events: PlayerEvents): Player;
  /** What carries agent turns; a socket unless given. */
  openSession?(options: ClientOptions): Session;
  socket?: OpenSocket;
  /** As Math.random: what the waits between tries are spread by. */
  random?(): number;
}
