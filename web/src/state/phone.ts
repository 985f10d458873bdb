import { signal } from '@preact/signals';
import type { Place } from '../client/admission';
import type { Timers } from '../client/line';
import type { RoomSource, Words } from '../client/room';

/** What is being said, or was just now. */
export interface Subtitle {
  segment: string;
  text: string;
  final: boolean;
}

/** How long a subtitle stays when all of it has been said, in ms. */
export const subtitleFor = 3000;

const longestRoom = 64;
const longestName = 64;

type Store = Pick<Storage, 'getItem' | 'setItem'> | null;

const kept = { room: 'vela.room', name: 'vela.name', identity: 'vela.identity' } as const;

/** What the page has of a room beside its conversation: where it is, as whom, and the words over the talk control. */
export class Phone {
  readonly room = signal('');
  readonly name = signal('');
  /** Whether the form was sent. */
  readonly joined = signal(false);
  /** Whether the whole conversation is shown in place of the subtitles. */
  readonly whole = signal(false);
  /** lk.agent.state of the agent that is here; null when there is none. */
  readonly agentState = signal<string | null>(null);
  /** The ids of whose work is shown here beside the agent's; null where that cannot be chosen. */
  readonly follow = signal<readonly string[] | null>(null);
  /** Who else there was to follow, when somebody looked. */
  readonly sources = signal<readonly RoomSource[]>([]);
  /** Why what was chosen is not so. */
  readonly notFollowed = signal('');
  readonly subtitles = signal<Readonly<Record<Words['role'], Subtitle | null>>>({ user: null, agent: null });
  #timers: Timers;
  #store: Store;
  #identity: string;
  #clearing: Record<Words['role'], unknown> = { user: null, agent: null };

  /** The address may name the room; what was typed into this tab before is there again. Otherwise there is one where people meet. */
  constructor(timers: Timers, store: Store, search: string, newIdentity: () => string) {
    this.#timers = timers;
    this.#store = store;
    this.room.value = (new URLSearchParams(search).get('room') ?? (this.#read(kept.room) || 'vela')).slice(0, longestRoom);
    this.name.value = this.#read(kept.name).slice(0, longestName);
    this.#identity = this.#read(kept.identity) || newIdentity();
    this.#write(kept.identity, this.#identity);
  }

  get place(): Place {
    return { room: this.room.value, name: this.name.value, identity: this.#identity };
  }

  /** What was typed into the form. Says whether there is a room in it. */
  join(room: string, name: string): boolean {
    this.room.value = room.trim().slice(0, longestRoom);
    this.name.value = name.trim().slice(0, longestName);
    if (this.room.value === '') return false;
    this.#write(kept.room, this.room.value);
    this.#write(kept.name, this.name.value);
    this.joined.value = true;
    return true;
  }

  leave(): void {
    this.joined.value = false;
    this.whole.value = false;
    this.sources.value = [];
    this.notFollowed.value = '';
    for (const role of ['user', 'agent'] as const) this.#show(role, null);
  }

  /** The words of whoever speaks. They stay for a while when they are final, and the agent's while they are heard. */
  said({ role, segment, text, final }: Words): void {
    // Nothing was recognised of what was begun.
    this.#show(role, text === '' ? null : { segment, text, final });
    if (final && text !== '' && !(role === 'agent' && this.agentState.value === 'speaking')) this.#clearLater(role);
  }

  agent(state: string | null): void {
    const spoke = this.agentState.value === 'speaking';
    this.agentState.value = state;
    if (spoke && state !== 'speaking' && this.subtitles.value.agent?.final) this.#clearLater('agent');
  }

  /** Who can be chosen: those that the gateway listens to, and those that are followed, wherever they are. */
  get choices(): readonly RoomSource[] {
    const followed = this.follow.value ?? [];
    const known = this.sources.value.filter((s) => s.here || followed.includes(s.id));
    return [...known, ...followed.filter((id) => !known.some((s) => s.id === id)).map((id) => ({ id, name: id, here: false }))];
  }

  /** Has one of them followed or not any more, by what is asked of the gateway: it returns what is against it, '' for nothing. */
  async choose(id: string, on: boolean, ask: (sources: readonly string[]) => Promise<string>): Promise<void> {
    const before = this.follow.value ?? [];
    const others = before.filter((other) => other !== id);
    const wanted = on ? [...others, id] : others;
    // As if it were so already: whoever presses the next switch means both.
    this.follow.value = wanted;
    this.notFollowed.value = '';
    this.notFollowed.value = await ask(wanted);
    if (this.notFollowed.value !== '' && this.follow.value === wanted) this.follow.value = before;
  }

  #show(role: Words['role'], subtitle: Subtitle | null): void {
    this.#timers.clear(this.#clearing[role]);
    this.subtitles.value = { ...this.subtitles.value, [role]: subtitle };
  }

  #clearLater(role: Words['role']): void {
    this.#timers.clear(this.#clearing[role]);
    this.#clearing[role] = this.#timers.set(() => this.#show(role, null), subtitleFor);
  }

  #read(key: string): string {
    try {
      return this.#store?.getItem(key) ?? '';
    } catch {
      return '';
    }
  }

  #write(key: string, value: string): void {
    try {
      this.#store?.setItem(key, value);
    } catch {
      // Then it is typed again.
    }
  }
}

/** What an agent does, in words for who looks at the room. */
export function agentWords(state: string | null): string {
  switch (state) {
    case null:
      return 'No agent is here yet';
    case 'thinking':
      return 'The agent is thinking';
    case 'speaking':
      return 'The agent is speaking';
    case 'listening':
    case 'idle':
      return 'The agent listens';
    default:
      return 'The agent is getting ready';
  }
}
