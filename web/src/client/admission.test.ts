import { expect, it } from 'vitest';
import { fetchAdmission, summonAgent, type Admission, type Refusal } from './admission';

const place = { room: 'harbour', identity: 'phone-1', name: 'Anna' };

const answers =
  (status: number, body: string, seen: { url: string; init: RequestInit }[] = []): typeof fetch =>
  async (url, init) => {
    seen.push({ url: String(url), init: init! });
    return new Response(body, { status });
  };

it("asks in LiveKit's standard format", async () => {
  const seen: { url: string; init: RequestInit }[] = [];
  const got = await fetchAdmission(place, 'jwt', answers(201, '{"server_url":"wss://lk","participant_token":"t","room_name":"harbour"}', seen));
  expect(got).toEqual({ url: 'wss://lk', token: 't' });
  const { url, init } = seen[0]!;
  expect([url, init.method]).toEqual(['/api/livekit/token', 'POST']);
  expect(init.headers).toEqual({ 'content-type': 'application/json', authorization: 'Bearer jwt' });
  expect(JSON.parse(String(init.body))).toEqual({ room_name: 'harbour', participant_identity: 'phone-1', participant_name: 'Anna' });
  await fetchAdmission({ ...place, name: '' }, null, answers(200, '{}', seen));
  expect(seen[1]!.init.headers).toEqual({ 'content-type': 'application/json' });
  expect(JSON.parse(String(seen[1]!.init.body))).toEqual({ room_name: 'harbour', participant_identity: 'phone-1' });
});

it.each<[number, string, Admission | Refusal]>([
  [200, '{"server_url":"","participant_token":"t"}', { kind: 'refused', words: '' }],
  [200, '{"server_url":1}', { kind: 'refused', words: '' }],
  [200, 'null', { kind: 'refused', words: '' }],
  [200, 'no JSON', { kind: 'gone' }],
  [401, '', { kind: 'sign in' }],
  [403, '{"message":"Not this room."}', { kind: 'refused', words: 'Not this room.' }],
  [400, 'no JSON', { kind: 'refused', words: '' }],
  [429, '{"message":7}', { kind: 'refused', words: '' }],
  [404, '', { kind: 'none' }],
  [405, '', { kind: 'none' }],
  [501, '', { kind: 'none' }],
  [503, '', { kind: 'none' }],
  [500, '', { kind: 'gone' }],
  [502, '', { kind: 'gone' }],
])('%i %s', async (status, body, expected) => {
  expect(await fetchAdmission(place, null, answers(status, body))).toEqual(expected);
});

it('is told when nobody answers', async () => {
  expect(await fetchAdmission(place, null, async () => Promise.reject(new TypeError('failed')))).toEqual({ kind: 'gone' });
});

it('asks for an agent, and does not mind', async () => {
  const seen: { url: string; init: RequestInit }[] = [];
  await summonAgent('a room/1', 'jwt', answers(200, '', seen));
  expect(seen[0]!.url).toBe('/api/livekit/rooms/a%20room%2F1/join');
  await summonAgent('r', null, async () => Promise.reject(new TypeError('failed')));
});
