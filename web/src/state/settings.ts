export type Theme = 'system' | 'light' | 'dark';

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
}

/** The gateway follows no more for one session. */
export const mostFollowed = 16;

type Store = Pick<Storage, 'getItem' | 'setItem'>;

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
  } catch {
    // They hold until the page is closed.
  }
}
