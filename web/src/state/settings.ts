import type { VAD } from '@vela/protocol';

export type Theme = 'system' | 'light' | 'dark';
/** How readily a sound is taken for speech, hands-free. */
export type Sensitivity = 'high' | 'usual' | 'low';
/** How long a silence ends what is said, hands-free. */
export type Pause = 'short' | 'usual' | 'long';

/** What the page remembers in the browser. Which turns it runs is in its address instead, where it can be seen and shared. */
export interface Settings {
  theme: Theme;
  tapInsteadOfHold: boolean;
  /** '' is the system's own choice. */
  deviceId: string;
  /** Who is to answer, by name; '' is the gateway's own choice. */
  agent: string;
  /** Who is to speak the answers, by name; '' is the gateway's own choice. */
  voice: string;
  /** Whether answers are to be heard. */
  speak: boolean;
  /** Whether the page listens by itself. */
  handsFree: boolean;
  /** The sources whose agents are shown in the conversation: their names, by their ids. */
  follow: Readonly<Record<string, string>>;
  sensitivity: Sensitivity;
  pause: Pause;
}

/** The gateway follows no more for one session. */
export const mostFollowed = 16;

type Store = Pick<Storage, 'getItem' | 'setItem'>;

const oneOf = <T extends string>(values: T[], stored: string): T | 'usual' => values.find((value) => value === stored) ?? 'usual';

const thresholds = { high: 0.35, low: 0.7 };
const silences = { short: 400, long: 1200 };

/** What of the gateway's own detection is to be other than usual. */
export function detectionOf({ sensitivity, pause }: Settings): VAD {
  return { ...(sensitivity !== 'usual' && { threshold: thresholds[sensitivity] }), ...(pause !== 'usual' && { silenceMs: silences[pause] }) };
}

export function readSettings(store: Store | null): Settings {
  const get = (key: string): string => {
    try {
      return store?.getItem(`vela.${key}`) ?? '';
    } catch {
      return ''; // storage may be closed to the page
    }
  };
  const theme = get('theme');
  return {
    theme: theme === 'light' || theme === 'dark' ? theme : 'system',
    tapInsteadOfHold: get('tap') === 'yes',
    deviceId: get('device'),
    agent: get('agent'),
    voice: get('voice'),
    speak: get('speak') !== 'no',
    handsFree: get('handsFree') === 'yes',
    follow: readFollowed(get('follow')),
    sensitivity: oneOf(['high', 'low'], get('sensitivity')),
    pause: oneOf(['short', 'long'], get('pause')),
  };
}

function readFollowed(text: string): Record<string, string> {
  try {
    const pairs = JSON.parse(text || '[]') as [unknown, unknown][];
    return Object.fromEntries(pairs.slice(0, mostFollowed).map(([id, name]) => [String(id), String(name)]));
  } catch {
    return {};
  }
}

export function writeSettings(store: Store | null, settings: Settings): void {
  try {
    store?.setItem('vela.theme', settings.theme);
    store?.setItem('vela.tap', settings.tapInsteadOfHold ? 'yes' : 'no');
    store?.setItem('vela.device', settings.deviceId);
    store?.setItem('vela.agent', settings.agent);
    store?.setItem('vela.voice', settings.voice);
    store?.setItem('vela.speak', settings.speak ? 'yes' : 'no');
    store?.setItem('vela.handsFree', settings.handsFree ? 'yes' : 'no');
    store?.setItem('vela.follow', JSON.stringify(Object.entries(settings.follow)));
    store?.setItem('vela.sensitivity', settings.sensitivity);
    store?.setItem('vela.pause', settings.pause);
  } catch {
    // They hold until the page is closed.
  }
}
