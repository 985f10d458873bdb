import { render } from 'preact';
import { act } from 'preact/test-utils';
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { terms } from '../client/fakes';
import { bench, engines, openMicrophone, settle, type Bench, type BenchOptions } from '../state/fakes';
import { markedEnd } from './ArtifactBody';
import { Page } from './Page';
import { settings } from './settings';
import { axis } from './Waterfall';

let root: HTMLElement;

beforeAll(() => settings.want()); // they come with a file of their own

beforeEach(() => {
  root = document.createElement('div');
  document.body.append(root);
});

afterEach(() => {
  void act(() => render(null, root));
  root.remove();
  vi.useRealTimers();
});

async function page(options?: BenchOptions): Promise<Bench> {
  const b = await bench(options);
  await act(() => render(<Page app={b.app} />, root));
  return b;
}

const get = <T extends HTMLElement>(id: string): T => document.getElementById(id) as T;
const say = (b: Bench, type: string, payload: unknown = {}) => act(() => b.socket().say(type, payload));
const key = (target: EventTarget, name: 'keydown' | 'keyup', init: KeyboardEventInit): KeyboardEvent => {
  const event = new KeyboardEvent(name, { bubbles: true, cancelable: true, ...init });
  void act(() => void target.dispatchEvent(event));
  return event;
};
const pointer = (target: EventTarget, name: string, init: PointerEventInit = {}) =>
  act(() => void target.dispatchEvent(new PointerEvent(name, { bubbles: true, button: 0, isPrimary: true, pointerId: 1, ...init })));

describe('what tests of the whole hold on to', () => {
  test('a turn is an article with both voices, and the partial is gone after the final', async () => {
    const b = await page();
    expect(get('connection').textContent).toBe('Connected');
    expect(get('connection').dataset.state).toBe('connected');
    expect(get('session').dataset.state).toBe('idle');
    await pointer(get('talk'), 'pointerdown');
    await say(b, 'session.state', { value: 'listening' });
    await say(b, 'transcript.partial', { text: 'now do the' });
    await say(b, 'transcript.partial', { text: 'now do the same' });
    expect(get('partial').hidden).toBe(false);
    expect(get('partial').textContent).toBe('now do the same');
    expect(get('partial').querySelector('.pale')!.textContent).toBe(' same');
    await pointer(window, 'pointerup');
    await say(b, 'transcript.final', { text: 'the final words' });
    await say(b, 'session.state', { value: 'speaking' });
    await say(b, 'response.text.delta', { text: 'the ' });
    await say(b, 'response.text.delta', { text: 'answer' });
    expect(get('partial').hidden).toBe(true);
    expect(get('partial').textContent).toBe('');
    const turn = get('conversation').querySelector('[data-turn]')!;
    expect(turn.querySelector('[data-who="user"]')!.textContent).toBe('the final words');
    expect(turn.querySelector('[data-who="agent"]')!.textContent).toBe('the answer');
    expect(get('session').textContent).toBe('Speaking');
    expect(get<HTMLButtonElement>('talk').disabled).toBe(true);
    expect(get<HTMLButtonElement>('mocked').disabled).toBe(true);
    expect(get<HTMLButtonElement>('stop').disabled).toBe(false);
    expect(get('stop').textContent).toContain('Cancel');
  });

  test('a disabled control says why', async () => {
    await page({ greet: false });
    const why = document.getElementById(get('talk').getAttribute('aria-describedby')!);
    expect(why!.textContent).toBe('Off: there is no connection to the gateway.');
  });

  test('a garbage message ends in words', async () => {
    const b = await page();
    await act(() => b.socket().sayRaw('garbage'));
    expect(get('banner').textContent).toContain('Connection error. The gateway sent a message that this page cannot read.');
    expect(get('banner').closest('[role="alert"]')).not.toBeNull();
    expect(get('connection').textContent).toBe('Error');
  });

  test('text of the gateway is text', async () => {
    const b = await page();
    await say(b, 'response.text.delta', { text: '<img src=x onerror=alert(1)>' });
    expect(document.querySelector('[data-who="agent"]')!.textContent).toBe('<img src=x onerror=alert(1)>');
    expect(document.querySelector('[data-who="agent"] img')).toBeNull();
  });
});

describe('holding', () => {
  test('a second pointer, the other button and a key during a hold are ignored', async () => {
    const b = await page();
    await pointer(get('talk'), 'pointerdown', { button: 2 });
    await pointer(get('talk'), 'pointerdown', { isPrimary: false, pointerId: 3 });
    expect(b.socket().sent).toEqual([]);
    await pointer(get('talk'), 'pointerdown');
    await pointer(get('talk'), 'pointerdown', { pointerId: 2 });
    key(document.body, 'keydown', { key: ' ' });
    key(document.body, 'keyup', { key: ' ' });
    key(get('talk'), 'keydown', { key: 'Enter' });
    await pointer(window, 'pointerup', { pointerId: 2 });
    expect(b.socket().types).toEqual(['input_audio.append']);
    await pointer(window, 'pointerup');
    expect(b.socket().types).toEqual(['input_audio.append', 'input_audio.commit']);
  });

  test.each([
    ['the pointer is cancelled', () => pointer(window, 'pointercancel')],
    ['the window is blurred', () => act(() => void window.dispatchEvent(new Event('blur')))],
  ])('%s: cancelled, and the release that follows sends nothing', async (_, lose) => {
    const b = await page();
    await pointer(get('talk'), 'pointerdown');
    await lose();
    await pointer(window, 'pointerup');
    expect(b.socket().types).toEqual(['input_audio.append', 'response.cancel']);
    expect(get('dismiss-unsent').textContent).toBe('Dismiss');
  });

  test('Space holds on the page, the conversation and the control; repeats are ignored, and nothing scrolls', async () => {
    const b = await page();
    for (const target of [document.body, get('conversation'), get('talk')]) {
      expect(key(target, 'keydown', { key: ' ' }).defaultPrevented).toBe(true);
      expect(key(target, 'keydown', { key: ' ', repeat: true }).defaultPrevented).toBe(true);
      expect(key(target, 'keyup', { key: ' ' }).defaultPrevented).toBe(true);
      await say(b, 'session.state', { value: 'thinking' });
      await say(b, 'session.state', { value: 'idle' });
    }
    expect(b.socket().types.filter((t) => t === 'input_audio.append')).toHaveLength(3);
    expect(b.socket().types.filter((t) => t === 'input_audio.commit')).toHaveLength(3);
  });

  test('Space on another button keeps its meaning', async () => {
    const b = await page();
    expect(key(get('mocked'), 'keydown', { key: ' ' }).defaultPrevented).toBe(false);
    key(get('mocked'), 'keyup', { key: ' ' });
    expect(b.socket().sent).toEqual([]);
  });

  test('Enter, and a click of assistive technology, start and send', async () => {
    const b = await page();
    key(get('talk'), 'keydown', { key: 'Enter' });
    expect(get('talk').getAttribute('aria-pressed')).toBe('true');
    key(get('talk'), 'keydown', { key: 'Enter', repeat: true });
    key(get('talk'), 'keydown', { key: 'Enter' });
    expect(b.socket().types).toEqual(['input_audio.append', 'input_audio.commit']);
    await say(b, 'session.state', { value: 'thinking' });
    await say(b, 'session.state', { value: 'idle' });
    await act(() => void get('talk').dispatchEvent(new MouseEvent('click', { bubbles: true, detail: 0 })));
    await act(() => void get('talk').dispatchEvent(new MouseEvent('click', { bubbles: true, detail: 0 })));
    expect(b.socket().types.slice(2)).toEqual(['input_audio.append', 'input_audio.commit']);
  });

  test('the click that ends a hold is no toggle', async () => {
    const b = await page();
    await pointer(get('talk'), 'pointerdown');
    await pointer(window, 'pointerup');
    await say(b, 'session.state', { value: 'thinking' });
    await say(b, 'session.state', { value: 'idle' });
    await act(() => void get('talk').dispatchEvent(new MouseEvent('click', { bubbles: true, detail: 1 })));
    expect(b.socket().types).toEqual(['input_audio.append', 'input_audio.commit']);
  });

  test('tap instead of hold', async () => {
    const b = await page();
    await act(() => b.app.change({ tapInsteadOfHold: true }));
    await pointer(get('talk'), 'pointerdown');
    await pointer(window, 'pointerup');
    expect(b.socket().sent).toEqual([]);
    await act(() => void get('talk').dispatchEvent(new MouseEvent('click', { bubbles: true, detail: 1 })));
    expect(b.socket().types).toEqual(['input_audio.append']);
    // A key that stays down is one tap, and its end on the control is no click.
    key(get('talk'), 'keydown', { key: ' ' });
    key(get('talk'), 'keydown', { key: ' ', repeat: true });
    expect(key(get('talk'), 'keyup', { key: ' ' }).defaultPrevented).toBe(true);
    expect(b.socket().types).toEqual(['input_audio.append', 'input_audio.commit']);
    await say(b, 'session.state', { value: 'thinking' });
    await say(b, 'session.state', { value: 'idle' });
    key(get('talk'), 'keydown', { key: ' ' });
    key(get('talk'), 'keydown', { key: ' ', repeat: true });
    expect(b.socket().types.slice(2)).toEqual(['input_audio.append']);
    expect(b.stored.get('vela.tap')).toBe('yes');
  });
});

describe('Escape, first that applies', () => {
  test('discards the hold, then stops the turn, then nothing', async () => {
    const b = await page();
    await pointer(get('talk'), 'pointerdown');
    expect(key(document.body, 'keydown', { key: 'Escape' }).defaultPrevented).toBe(true);
    await pointer(window, 'pointerup');
    expect(b.socket().types).toEqual(['input_audio.append', 'response.cancel']);
    await act(() => get('mocked').click());
    key(document.body, 'keydown', { key: 'Escape' });
    expect(b.socket().types.slice(2)).toEqual(['mocked.turn.trigger', 'response.cancel']);
    await say(b, 'session.state', { value: 'idle' });
    expect(key(document.body, 'keydown', { key: 'Escape' }).defaultPrevented).toBe(false);
  });

  test('closes the settings and leaves the turn alone', async () => {
    const b = await page();
    await act(() => get('mocked').click());
    const opener = document.querySelector<HTMLElement>('[aria-label="Settings"]')!;
    await act(() => opener.click());
    expect(get('settings').contains(document.activeElement)).toBe(true);
    key(document.activeElement!, 'keydown', { key: 'Escape' });
    await act(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));
    expect(get('settings')).toBeNull();
    expect(document.activeElement).toBe(opener);
    expect(b.socket().types).toEqual(['mocked.turn.trigger']);
  });
});

describe('the views', () => {
  const go = (b: Bench, hash: string) =>
    act(() => {
      b.location.hash = hash;
      b.app.hashChanged();
    });
  const current = () => [...document.querySelectorAll('.bar nav a')].map((a) => [a.textContent, a.getAttribute('href'), a.getAttribute('aria-current')]);

  test('are links in the bar; in another one no key talks', async () => {
    const b = await page();
    expect(current()).toEqual([
      ['Talk', '#talk', 'page'],
      ['Signals', '#signals', null],
      ['Wiring', '#wiring', null],
    ]);
    await go(b, '#wiring');
    expect(current()[2]![2]).toBe('page');
    expect(get('talk')).toBeNull();
    expect(key(document.body, 'keydown', { key: ' ' }).defaultPrevented).toBe(false);
    key(document.body, 'keyup', { key: ' ' });
    key(document.body, 'keydown', { key: '/' });
    expect(b.socket().sent).toEqual([]);
    await go(b, '#anything');
    expect(get('talk')).not.toBeNull();
  });

  test('a hold ends where the talk control goes, and is not sent', async () => {
    const b = await page();
    await pointer(get('talk'), 'pointerdown');
    await go(b, '#signals');
    expect(b.socket().types).toEqual(['input_audio.append', 'response.cancel']);
  });
});

describe('settings', () => {
  const openSettings = () => act(() => document.querySelector<HTMLElement>('[aria-label="Settings"]')!.click());

  test('turns switch by the arrow keys, and not during a turn', async () => {
    const b = await page();
    await openSettings();
    key(get('turns-deterministic'), 'keydown', { key: 'ArrowLeft' });
    expect(b.socket().url).toContain('turns=agent');
    expect(document.activeElement).toBe(get('turns-agent'));
    await act(() => b.socket().greet());
    await say(b, 'session.state', { value: 'thinking' });
    key(get('turns-agent'), 'keydown', { key: 'ArrowRight' });
    expect(b.app.model.value.turns).toBe('agent');
    expect(get('turns').getAttribute('aria-disabled')).toBe('true');
  });

  test('the theme overrides the system and is remembered', async () => {
    const b = await page();
    await openSettings();
    await act(() => get('theme-dark').click());
    expect(document.documentElement.dataset.theme).toBe('dark');
    expect(b.stored.get('vela.theme')).toBe('dark');
    await act(() => get('theme-system').click());
    expect(document.documentElement.dataset.theme).toBeUndefined();
  });

  test('an engine that is not there says why, and what would be better', async () => {
    const ears = { name: 'none', label: 'PocketSphinx', available: false, why: 'not in this build', better: 'Build with pocketsphinx' };
    await page({
      turns: 'agent',
      engines: {
        turns: 'agent',
        agent: { name: 'openclaw', label: 'OpenClaw', available: false, why: 'nothing answers on port 18789', better: '' },
        transcriber: ears,
        ears: [ears],
        voices: [],
        detectors: [
          { name: 'silero', label: 'Silero VAD 5', available: false, why: 'no model', better: '' },
          { name: 'energy', label: 'Loudness and pitch', available: true, why: '', better: 'Silero is better' },
        ],
      },
    });
    expect(get('recogniser').textContent).toBe('PocketSphinx is not available: not in this build. Build with pocketsphinx.');
    await openSettings();
    expect(get('agent').textContent).toContain('nothing answers on port 18789');
    expect(get('agent').textContent).toContain('not there');
    expect(get('transcriber').textContent).toContain('Build with pocketsphinx.');
    expect(get('settings').textContent).toContain('Speech is noticed by Loudness and pitch. Silero is better.');
  });
});

describe('hands-free', () => {
  const canListen = { ...terms('session-1'), features: ['text', 'audio_in', 'resume', 'history', 'vad'] };

  /** A page whose gateway can hear where speech begins and ends, and has been asked to. */
  async function listens(): Promise<Bench> {
    const b = await page({ turns: 'agent' });
    await say(b, 'session.ready', canListen);
    await act(() => get('hands-free').click());
    await act(settle);
    await say(b, 'session.ready', { ...canListen, turnDetection: 'vad' });
    await say(b, 'session.state', { value: 'idle' });
    return b;
  }

  test('is one switch, in the helm and in the settings', async () => {
    const b = await listens();
    expect(get('hands-free').getAttribute('aria-checked')).toBe('true');
    expect(b.microphone.opened).toHaveLength(1);
    expect(document.querySelector('.helm')!.getAttribute('data-live')).toBe('yes');
    await act(() => void (b.app.settingsOpen.value = true));
    expect(get('hands-free-setting').getAttribute('aria-checked')).toBe('true');
    await act(() => get('hands-free-setting').click());
    expect(get('hands-free').getAttribute('aria-checked')).toBe('false');
  });

  test('is off and says why before a gateway that cannot', async () => {
    await page({ turns: 'agent' });
    const control = get<HTMLButtonElement>('hands-free');
    expect(control.disabled).toBe(true);
    expect(get(control.getAttribute('aria-describedby')!).textContent).toBe('Off: this gateway cannot hear where speech begins and ends.');
  });

  test('is not there in deterministic turns', async () => {
    await page();
    expect(get('hands-free')).toBeNull();
  });

  test('makes the control a pause button, for the pointer, Space and Enter; its name stays, pressed says the rest', async () => {
    await listens();
    const control = get('talk');
    const state = (): (string | null)[] => [control.getAttribute('aria-label'), control.getAttribute('aria-pressed')];
    expect(state()).toEqual(['Pause listening', 'false']);
    await pointer(control, 'pointerdown');
    await pointer(window, 'pointerup');
    expect(state()).toEqual(['Pause listening', 'true']);
    key(document.body, 'keydown', { key: ' ' });
    key(document.body, 'keyup', { key: ' ' });
    expect(state()).toEqual(['Pause listening', 'false']);
    key(control, 'keydown', { key: 'Enter' });
    expect(state()).toEqual(['Pause listening', 'true']);
    await act(() => void control.dispatchEvent(new MouseEvent('click', { detail: 0, bubbles: true })));
    expect(state()).toEqual(['Pause listening', 'false']);
  });

  test('and tapping instead of holding: the same', async () => {
    const b = await listens();
    await act(() => b.app.change({ tapInsteadOfHold: true }));
    await act(() => void get('talk').dispatchEvent(new MouseEvent('click', { detail: 1, bubbles: true })));
    expect(get('talk').getAttribute('aria-pressed')).toBe('true');
    expect(document.querySelector('.helm .small')!.textContent).toBe('Press to go on');
  });

  test('shows the words as they are heard', async () => {
    const b = await listens();
    await say(b, 'session.state', { value: 'listening' });
    await say(b, 'transcript.partial', { text: 'now do' });
    expect(get('partial').textContent).toBe('now do');
  });
});

test('a microphone that is refused: an alert with one action', async () => {
  const b = await page({ turns: 'agent' });
  b.microphone.fault = 'refused';
  await pointer(get('talk'), 'pointerdown');
  await act(settle);
  expect(get('banner').textContent).toContain('Microphone refused. Vela cannot hear you.');
  b.microphone.fault = null;
  await act(() => get('banner').querySelector('button')!.click());
  await act(settle);
  expect(get('banner')).toBeNull();
});

describe('typing', () => {
  const type = (text: string): void => {
    const input = get<HTMLTextAreaElement>('type');
    input.value = text;
    void act(() => void input.dispatchEvent(new Event('input', { bubbles: true })));
  };
  const frame = () => act(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));

  test('/ goes to the input, Enter sends, Shift+Enter and the end of a composed word do not', async () => {
    const b = await page({ turns: 'agent' });
    expect(key(document.body, 'keydown', { key: '/' }).defaultPrevented).toBe(true);
    await frame();
    expect(document.activeElement).toBe(get('type'));
    expect(key(get('type'), 'keydown', { key: '/' }).defaultPrevented).toBe(false);
    type('hello');
    key(get('type'), 'keydown', { key: 'Enter', shiftKey: true });
    key(get('type'), 'keydown', { key: 'Enter', isComposing: true });
    expect(b.socket().asked).toEqual([]);
    key(get('type'), 'keydown', { key: 'Enter' });
    key(get('type'), 'keydown', { key: 'Enter', repeat: true });
    expect(b.socket().asked).toEqual(['input_text.submit']);
    expect(get<HTMLTextAreaElement>('type').value).toBe('');
    expect(document.activeElement).toBe(get('type'));
  });

  test('Space in it is a space, and Escape stops the answer', async () => {
    const b = await page({ turns: 'agent' });
    type('hello');
    get('send').click();
    await say(b, 'transcript.final', { text: 'hello' });
    await say(b, 'session.state', { value: 'thinking' });
    get('type').focus();
    expect(key(get('type'), 'keydown', { key: ' ' }).defaultPrevented).toBe(false);
    key(get('type'), 'keydown', { key: 'Escape' });
    expect(b.socket().asked).toEqual(['input_text.submit', 'response.cancel']);
    expect(get('conversation').querySelector('[data-turn]')!.getAttribute('data-kind')).toBe('text');
  });

  test('what cannot be sent stays in it', async () => {
    const b = await page({ turns: 'agent' });
    await act(() => b.socket().end(1006));
    type('hello');
    key(get('type'), 'keydown', { key: 'Enter' });
    expect(get<HTMLTextAreaElement>('type').value).toBe('hello');
    expect(get<HTMLTextAreaElement>('type').disabled).toBe(true);
    expect(get('type-why').textContent).toBe('Off: there is no connection to the gateway.');
  });

  test('deterministic turns have none, and / means nothing there', async () => {
    await page();
    expect(get('type').closest('form')!.hidden).toBe(true);
    expect(key(document.body, 'keydown', { key: '/' }).defaultPrevented).toBe(false);
  });

  test('the words of a lost hold are sent as text, or dismissed', async () => {
    const b = await page({ turns: 'agent' });
    await act(() => openMicrophone(b));
    await pointer(get('talk'), 'pointerdown');
    await act(() => b.microphone.hear(1, 2));
    await say(b, 'transcript.partial', { text: 'half' });
    await act(() => void window.dispatchEvent(new Event('blur')));
    await act(() => get('send-unsent').click());
    expect(b.socket().asked).toEqual(['audio', 'input_audio.clear', 'input_text.submit']);
    expect(get('dismiss-unsent')).toBeNull();
  });
});

test('thoughts are folded away, tools are steps, and neither is part of the answer', async () => {
  const b = await page({ turns: 'agent' });
  await say(b, 'transcript.final', { text: 'look' });
  await say(b, 'thinking.delta', { text: 'hm' });
  await say(b, 'tool.call', { callId: 'c1', name: 'read_file', input: { path: '<b>' } });
  await say(b, 'tool.result', { callId: 'c1', name: 'read_file', success: false });
  await say(b, 'response.text.delta', { text: 'found' });
  const turn = get('conversation').querySelector('[data-turn]')!;
  expect(turn.querySelector<HTMLDetailsElement>('.thought')!.open).toBe(false);
  expect(turn.querySelector('.step')!.textContent).toBe('read_file<b>failed, 1 ms');
  expect(turn.querySelector('[data-who="agent"]')!.textContent).toBe('found');
});

test('a lost connection: the session is kept, and no second is read aloud', async () => {
  const b = await page({ turns: 'agent' });
  await act(() => b.socket().end(1006));
  expect(get('session').dataset.state).toBe('kept');
  expect(get('session').textContent).toBe('Kept');
  expect(get('banner').querySelector('[aria-live="off"]')!.textContent).toMatch(/^Trying again in/);
});

test('the conversation as a whole: saved, and begun anew', async () => {
  const b = await page({ turns: 'agent' });
  expect(get<HTMLButtonElement>('save-transcript').disabled).toBe(true);
  await say(b, 'transcript.final', { text: 'one' });
  await say(b, 'session.state', { value: 'idle' });
  await act(() => get('save-transcript').click());
  expect(b.saved).toHaveLength(1);
  await act(() => get('new-conversation').click());
  await say(b, 'history', { items: [] });
  expect(get('conversation').querySelector('[data-turn]')).toBeNull();
});

describe('signing in', () => {
  const admits = (token: string | null): boolean => token === 'good.to.ken';

  test('one field, that nobody remembers; what is wrong is said; then the page', async () => {
    const b = await page({ turns: 'agent', greet: false, admits });
    const field = get<HTMLInputElement>('token');
    expect([field.type, field.autocomplete]).toEqual(['password', 'off']);
    expect(get('token-wrong').textContent).toBe('');
    expect(get('talk')).toBeNull();
    const enter = async (token: string): Promise<void> => {
      get<HTMLInputElement>('token').value = token;
      await act(() => void get('sign-in').dispatchEvent(new Event('submit', { bubbles: true, cancelable: true })));
      await act(settle);
    };
    await enter('bad.to.ken');
    expect(get('token-wrong').textContent).toMatch(/^The gateway did not take this token\./);
    expect(get<HTMLInputElement>('token').value).toBe('');
    await enter('good.to.ken');
    await act(() => b.socket().greet());
    expect(get('sign-in')).toBeNull();
    expect(get<HTMLButtonElement>('talk').disabled).toBe(false);
  });
});

test('what the gateway measured replaces what the page saw', async () => {
  const b = await page({ turns: 'agent' });
  await act(() => void b.app.submit('hello'));
  await say(b, 'transcript.final', { text: 'hello' });
  await say(b, 'response.created', { responseId: 'r1', turnId: 't1' });
  await say(b, 'response.text.delta', { text: 'hi' });
  await say(b, 'response.completed', { responseId: 'r1' });
  expect(document.querySelector('.waterfall')).toBeNull();
  const usage = { promptTokens: 1204, completionTokens: 88 };
  await say(b, 'turn.metrics', { turnId: 't1', firstTokenMs: 604, gatewayMs: 4, totalMs: 900, usage });
  const fall = document.querySelector('.waterfall')!;
  expect(fall.querySelector('summary')!.textContent).toBe('0.60 s from sending to the first word');
  expect([...fall.querySelectorAll('.value')].map((v) => v.textContent)).toEqual(['none', '604 ms', 'none']);
  expect(fall.querySelector('.key')!.textContent).toBe('Vela itself 4 ms, the whole turn 0.90 s.');
  expect(document.querySelector('.usage')!.textContent).toBe('1,204 tokens in, 88 out');
});

test('a spoken turn shows its stages', async () => {
  const b = await page({ turns: 'agent' });
  await act(() => openMicrophone(b));
  await pointer(get('talk'), 'pointerdown');
  await act(() => b.microphone.hear(1, 2));
  b.timers.advance(500);
  await pointer(window, 'pointerup');
  await act(settle);
  b.timers.advance(186);
  await say(b, 'transcript.final', { text: 'hello' });
  b.timers.advance(418);
  await say(b, 'response.text.delta', { text: 'hi' });
  const fall = document.querySelector('.waterfall')!;
  expect(fall.querySelector('summary')!.textContent).toBe('0.60 s from letting go to the first word');
  expect(fall.querySelector('[role="img"]')!.getAttribute('aria-label')).toBe(
    'Latency of this turn: Recognise after 186 milliseconds, First word after 604 milliseconds.',
  );
});

test('a turn that nobody held counts from the end of speech', async () => {
  const b = await page({ turns: 'agent' });
  await act(() => b.socket().say('session.ready', { ...terms('session-1'), turnDetection: 'vad', features: ['vad'] }));
  await say(b, 'session.state', { value: 'listening' });
  await say(b, 'transcript.final', { text: 'hello' });
  await say(b, 'response.created', { responseId: 'r1', turnId: 't1' });
  await say(b, 'response.completed', { responseId: 'r1' });
  await say(b, 'turn.metrics', { turnId: 't1', sttMs: 608, firstTokenMs: 200, firstAudioMs: 300, gatewayMs: 4, totalMs: 2900 });
  const fall = document.querySelector('.waterfall')!;
  expect(fall.querySelector('summary')!.textContent).toBe('0.91 s from the end of speech to the first sound');
  expect([...fall.querySelectorAll('.value')].map((v) => v.textContent)).toEqual(['608 ms', '200 ms', '100 ms']);
  expect(fall.querySelector('.key')!.textContent).toMatch(/^Vela itself 4 ms, the whole turn 2.90 s./);
});

test.each([
  [9, 20],
  [30, 40],
  [186, 200],
  [604, 1000],
  [1500, 2000],
  [4000, 4000],
])('the axis of %i ms is %i ms long', (ms, length) => {
  expect(axis(ms)).toBe(length);
});

describe('an agent at work', () => {
  async function working(options: BenchOptions = {}): Promise<Bench> {
    const b = await page({ turns: 'agent', ...options });
    await say(b, 'transcript.final', { text: 'look' });
    await say(b, 'session.state', { value: 'thinking' });
    await say(b, 'response.created', { responseId: 'r1', turnId: 't1' });
    return b;
  }
  const question = { approvalId: 'a1', callId: 'c1', name: 'bash', summary: '<b>rm</b>', risk: 'high', expiresMs: 60_000 };
  const card = (): HTMLElement => document.querySelector<HTMLElement>('.ask')!;
  const buttons = (): HTMLButtonElement[] => [...card().querySelectorAll('button')];

  test('a question takes the focus to its card, and to no button; an answer gives it back', async () => {
    const b = await working();
    get('conversation').focus();
    await say(b, 'approval.request', question);
    expect(document.activeElement).toBe(card());
    expect(card().querySelector('.summary')!.textContent).toBe('<b>rm</b>');
    expect(get('asked').textContent).toContain('may it use bash?');
    await act(() => buttons()[0]!.click());
    expect(card()).toBeNull();
    expect(document.activeElement).toBe(get('conversation'));
    expect(b.socket().sent.at(-1)!.payload).toEqual({ approvalId: 'a1', allow: false });
  });

  test('whoever is writing keeps the focus', async () => {
    const b = await working();
    const input = get<HTMLTextAreaElement>('type');
    input.focus();
    input.value = 'half a';
    await act(() => void input.dispatchEvent(new Event('input', { bubbles: true })));
    await say(b, 'approval.request', question);
    expect(document.activeElement).toBe(input);
    key(input, 'keydown', { key: 'y' });
    expect(b.socket().asked).toEqual([]);
    expect(key(input, 'keydown', { key: '¥', code: 'KeyY', altKey: true }).defaultPrevented).toBe(true);
    expect(b.socket().sent.at(-1)!.payload).toEqual({ approvalId: 'a1', allow: true });
  });

  test('Space allows nothing, wherever the focus is, and does not talk from the card', async () => {
    const b = await working();
    await say(b, 'approval.request', question);
    for (const target of [card(), buttons()[1]!]) {
      target.focus();
      const down = key(target, 'keydown', { key: ' ' });
      const up = key(target, 'keyup', { key: ' ' });
      if (target !== card()) expect([down.defaultPrevented, up.defaultPrevented]).toEqual([true, true]);
    }
    expect(b.socket().asked).toEqual([]);
    expect(card()).not.toBeNull();
  });

  test('Alt+N denies; other keys, repeats and questions that are over are nothing', async () => {
    const b = await working();
    expect(key(document.body, 'keydown', { key: 'n', altKey: true }).defaultPrevented).toBe(false);
    await say(b, 'approval.request', question);
    for (const init of [{ key: 'y' }, { key: 'x', altKey: true }, { key: 'y', altKey: true, repeat: true }, { key: 'y', altKey: true, ctrlKey: true }]) {
      key(document.body, 'keydown', init);
    }
    expect(b.socket().asked).toEqual([]);
    await act(() => card().querySelector('input')!.click());
    key(document.body, 'keydown', { key: 'n', altKey: true });
    expect(b.socket().sent.at(-1)!.payload).toEqual({ approvalId: 'a1', allow: false, remember: true });
  });

  test('a question that waits is told in the bar of another view, where no key answers what cannot be seen; Escape still stops the turn', async () => {
    const b = await working();
    await say(b, 'approval.request', question);
    await act(() => {
      b.location.hash = '#wiring';
      b.app.hashChanged();
    });
    expect(document.querySelector('.bar nav a')!.textContent).toBe('Talk asks');
    key(document.body, 'keydown', { key: 'y', altKey: true });
    expect(b.socket().asked).toEqual([]);
    expect(key(document.body, 'keydown', { key: 'Escape' }).defaultPrevented).toBe(true);
    expect(b.socket().types).toContain('response.cancel');
  });

  test('without a connection it cannot be answered, and says so', async () => {
    const b = await working();
    await say(b, 'approval.request', question);
    await act(() => b.socket().end(1006));
    expect(buttons().map((x) => x.disabled)).toEqual([true, true]);
    expect(card().textContent).toContain('Off: there is no connection to the gateway.');
  });

  test('a step opens on what went in and out', async () => {
    const b = await working();
    await say(b, 'tool.call', { callId: 'c1', name: 'bash', input: { command: 'ls <x>' } });
    await say(b, 'tool.result', { callId: 'c1', name: 'bash', success: true, output: { content: '<script>1</script>' } });
    const details = document.querySelector<HTMLDetailsElement>('.step details')!;
    expect(details.querySelector('pre')).toBeNull();
    await act(() => {
      details.open = true;
      details.dispatchEvent(new Event('toggle'));
    });
    expect([...details.querySelectorAll('pre')].map((p) => p.textContent)).toEqual(['command: ls <x>', '<script>1</script>']);
    expect(details.querySelector('script')).toBeNull();
  });

  test('artifacts: tabs newest first, moved through by the arrows', async () => {
    const b = await working();
    for (const title of ['one', 'two', 'three']) await say(b, 'artifact', { type: 'artifact', artifact_type: 'code', title, content: `${title} <b>`, language: 'go' });
    const tabs = (): HTMLElement[] => [...document.querySelectorAll<HTMLElement>('[role="tab"]')];
    const panel = (): string => get('artifact-panel').querySelector('.lines')!.textContent!;
    expect(get('artifacts')).toBeNull(); // a narrow page does not bring them over the conversation by itself
    await act(() => get('open-artifacts').click());
    expect(tabs().map((t) => t.textContent)).toEqual(['three', 'two', 'one']);
    await vi.waitFor(() => expect(panel()).toBe('three <b>')); // what draws it comes when it is needed
    expect(tabs().map((t) => t.tabIndex)).toEqual([0, -1, -1]);
    for (const [stroke, shown] of [['ArrowRight', 'two <b>'], ['End', 'one <b>'], ['ArrowRight', 'three <b>'], ['ArrowLeft', 'one <b>'], ['Home', 'three <b>']]) {
      key(document.querySelector('[role="tab"][aria-selected="true"]')!, 'keydown', { key: stroke! });
      expect(panel()).toBe(shown);
    }
    await act(() => document.querySelector<HTMLElement>('.artifacts .close')!.click());
    expect(get('artifacts')).toBeNull();
    await act(() => get('open-artifacts').click());
    expect(get('artifacts')).not.toBeNull();
  });

  test('the agents in the bar: reached by arrows, chosen by Enter, one that is not there says why', async () => {
    const agents = {
      default: 'echo',
      agents: [
        { name: 'echo', label: 'Echo (built in)', kind: 'echo', available: true, why: '', tools: [] },
        { name: 'gone', label: 'Gone', kind: '', available: false, why: 'start it', tools: [] },
        { name: 'claude', label: 'Claude', kind: 'anthropic', available: true, why: '', tools: ['a', 'b', 'c', 'd', 'e', 'f'] },
      ],
    };
    const b = await page({ turns: 'agent', agents });
    await act(settle);
    await act(() => get('agent-choice').click());
    const options = [...document.querySelectorAll<HTMLElement>('[role="option"]')];
    expect(document.activeElement).toBe(options[0]);
    key(options[0]!, 'keydown', { key: 'ArrowDown' });
    expect(document.activeElement!.textContent).toBe('GoneNot there: start it.');
    key(options[1]!, 'keydown', { key: 'Enter' });
    expect(b.socket().asked).toEqual([]);
    key(options[1]!, 'keydown', { key: 'End' });
    expect(document.activeElement!.textContent).toBe('ClaudeTools: a, b, c, d and 2 more');
    key(options[2]!, 'keydown', { key: ' ' });
    expect(b.socket().sent.at(-1)).toMatchObject({ type: 'session.start', payload: { agent: 'claude' } });
    expect(document.activeElement).toBe(get('agent-choice'));
    await say(b, 'session.state', { value: 'thinking' });
    expect(get<HTMLButtonElement>('agent-choice').disabled).toBe(true);
    expect(get('agent-choice-why').textContent).toBe('Off during a turn.');
  });
});

test.each([
  ['short', 'a\nb', 3],
  ['one very long line', 'x'.repeat(5000), 0],
  ['many lines', 'x\n'.repeat(5000), 3000],
  ['much', `${'x'.repeat(1500)}\n`.repeat(200), 39 * 1501],
])('%s: what is drawn with its marks', (_, text, end) => expect(markedEnd(text)).toBe(end));

describe('an answer that is spoken', () => {
  const flite = { name: 'flite', label: 'Flite, US English', available: true, why: '', better: 'Install another one' };
  const options: BenchOptions = { turns: 'agent', engines: { ...engines, voices: [flite] }, greet: false };
  const output = { encoding: 'pcm16', rate: 24000, framing: 'json' };
  const chunk = 'A'.repeat(2560);
  const words = (who: string): string | undefined => document.querySelector(`[data-who="${who}"]`)?.textContent;

  async function speaking(): Promise<Bench> {
    const b = await page(options);
    await act(() => b.socket().greet('s', { audio: { output } }));
    act(() => void b.app.submit('count'));
    await say(b, 'transcript.final', { text: 'count' });
    await say(b, 'response.created', { responseId: 'r1', turnId: 't1' });
    await say(b, 'session.state', { value: 'speaking' });
    await say(b, 'response.text.delta', { text: 'One two three.', responseId: 'r1' });
    await say(b, 'response.audio.delta', { responseId: 'r1', chunk, startMs: 0, text: 'One' });
    await say(b, 'response.audio.delta', { responseId: 'r1', chunk, startMs: 40, text: ' two' });
    return b;
  }

  test('has full ink up to what was heard, and a bar there', async () => {
    const b = await speaking();
    expect([words('agent'), words('ahead')]).toEqual(['', 'One two three.']);
    act(() => b.player.play(80));
    expect([words('agent'), words('ahead')]).toEqual(['One', ' two three.']);
    expect(document.querySelector('.caret')).not.toBeNull();
    await say(b, 'response.completed', { responseId: 'r1', heardText: 'One two three.' });
    expect([words('agent'), words('ahead')]).toEqual(['One two three.', undefined]);
    expect(document.querySelector('.caret')).toBeNull();
  });

  test('keeps what was cut off in pale ink, and says how much was heard', async () => {
    const b = await speaking();
    await say(b, 'response.cancelled', { responseId: 'r1', reason: 'barge_in', heardText: 'One', playedMs: 4180 });
    expect(document.querySelector('.said:has(.cut)')!.textContent).toBe('Oneyou interrupted, 4.2 s heard two three.');
    expect(words('ahead')).toBe(' two three.');
    expect(document.querySelector('.caret')).toBeNull();
  });

  test('has its first sound among the stages', async () => {
    const b = await speaking();
    await say(b, 'response.completed', { responseId: 'r1', heardText: 'One two three.' });
    await say(b, 'turn.metrics', { turnId: 't1', firstTokenMs: 604, firstAudioMs: 871, gatewayMs: 4, totalMs: 900 });
    const fall = document.querySelector('.waterfall')!;
    expect(fall.querySelector('summary')!.textContent).toBe('0.87 s from sending to the first sound');
    expect([...fall.querySelectorAll('.value')].map((v) => v.textContent)).toEqual(['none', '604 ms', '267 ms']);
  });

  test('the settings say which voice it is and what would be better, and can silence it', async () => {
    const b = await speaking();
    act(() => void (b.app.settingsOpen.value = true));
    expect(get('voice').textContent).toContain('Spoken by Flite, US English. Install another one.');
    const { length } = b.player.pushed;
    act(() => get('speak').click());
    expect(get('speak').getAttribute('aria-checked')).toBe('false');
    await say(b, 'response.audio.delta', { responseId: 'r1', chunk, startMs: 80, text: ' three.' });
    expect(b.player.pushed.length).toBe(length);
    expect(b.socket().sent.at(-1)).toMatchObject({ type: 'playback.ack', payload: { responseId: 'r1', playedMs: 120 } });
  });

  test('without a voice the settings say why, and have no switch', async () => {
    const b = await page({ ...options, engines: { ...engines, voices: [{ ...flite, available: false, why: 'not installed' }] } });
    act(() => void (b.app.settingsOpen.value = true));
    expect(get('voice').textContent).toContain('Flite, US English is not available: not installed. Install another one.');
    expect(get('speak')).toBeNull();
  });
});
