import { beforeEach, expect, it } from 'vitest';
import { FakeStore, FakeTimers } from '../client/fakes';
import { agentWords, Phone } from './phone';

let timers: FakeTimers;
let store: FakeStore;
let phone: Phone;

beforeEach(() => {
  timers = new FakeTimers();
  store = new FakeStore();
  phone = new Phone(timers, store, '', () => 'phone-1');
});

const shown = (): (string | undefined)[] => [phone.subtitles.value.user?.text, phone.subtitles.value.agent?.text];

it('clears a subtitle 3 s after its final', () => {
  phone.said({ role: 'user', segment: 'u', text: 'how', final: false });
  timers.advance(60_000);
  phone.said({ role: 'user', segment: 'u', text: 'how far', final: true });
  phone.said({ role: 'agent', segment: 'a', text: 'Three', final: false });
  timers.advance(2999);
  expect(shown()).toEqual(['how far', 'Three']);
  timers.advance(1);
  expect(shown()).toEqual([undefined, 'Three']);
});

it('shows what follows, and does not clear it for what was before', () => {
  phone.said({ role: 'user', segment: 'u1', text: 'how far', final: true });
  timers.advance(2000);
  phone.said({ role: 'user', segment: 'u2', text: 'and', final: false });
  timers.advance(60_000);
  expect(shown()).toEqual(['and', undefined]);
  phone.said({ role: 'user', segment: 'u2', text: '', final: true });
  expect(shown()).toEqual([undefined, undefined]);
});

it("keeps the agent's words while they are heard", () => {
  phone.agent('speaking');
  phone.said({ role: 'agent', segment: 'a', text: 'Three miles.', final: true });
  timers.advance(60_000);
  expect(shown()).toEqual([undefined, 'Three miles.']);
  phone.agent('listening');
  timers.advance(3000);
  expect(shown()).toEqual([undefined, undefined]);
});

it('leaves with nothing shown', () => {
  phone.join('harbour', '');
  phone.said({ role: 'user', segment: 'u', text: 'how far', final: true });
  phone.leave();
  expect([phone.joined.value, ...shown()]).toEqual([false, undefined, undefined]);
});

it('wants a room, and knows it again in this tab', () => {
  expect(phone.join('  ', 'Anna')).toBe(false);
  expect(phone.joined.value).toBe(false);
  expect(phone.join(' harbour ', ' Anna ')).toBe(true);
  expect(phone.place).toEqual({ room: 'harbour', name: 'Anna', identity: 'phone-1' });
  const again = new Phone(timers, store, '', () => 'phone-2');
  expect(again.place).toEqual({ room: 'harbour', name: 'Anna', identity: 'phone-1' });
  expect(again.joined.value).toBe(false);
  expect(new Phone(timers, store, '?room=pier', () => '').room.value).toBe('pier');
  expect(new Phone(timers, null, '', () => 'p').room.value).toBe('vela');
  expect(new Phone(timers, null, `?room=${'x'.repeat(99)}`, () => 'p').room.value).toHaveLength(64);
});

it('has words for what an agent does', () => {
  const states = [null, 'initializing', 'listening', 'thinking', 'speaking', 'dreaming'];
  expect(states.map(agentWords)).toEqual([
    'No agent is here yet', 'The agent is getting ready', 'The agent listens', 'The agent is thinking', 'The agent is speaking', 'The agent is getting ready',
  ]);
});

it('offers whom the gateway listens to, and whoever is followed', () => {
  const lab = { id: 'remote:1', name: 'lab', here: true };
  phone.sources.value = [{ id: 'local:claude-code', name: 'Claude Code', here: false }, lab];
  phone.follow.value = [];
  expect(phone.choices).toEqual([lab]);
  phone.follow.value = ['local:claude-code', 'session:7'];
  expect(phone.choices).toEqual([...phone.sources.value, { id: 'session:7', name: 'session:7', here: false }]);
});

it('follows what was chosen, and takes back what the gateway refuses', async () => {
  const asked: (readonly string[])[] = [];
  phone.follow.value = ['a'];
  const yes = phone.choose('b', true, async (sources) => (asked.push(sources), ''));
  await Promise.all([yes, phone.choose('a', false, async (sources) => (asked.push(sources), ''))]);
  expect(asked).toEqual([['a', 'b'], ['b']]);
  expect([phone.follow.value, phone.notFollowed.value]).toEqual([['b'], '']);
  const no = phone.choose('c', true, async () => 'Your token does not let you.');
  expect(phone.follow.value).toEqual(['b', 'c']);
  await no;
  expect([phone.follow.value, phone.notFollowed.value]).toEqual([['b'], 'Your token does not let you.']);
});
