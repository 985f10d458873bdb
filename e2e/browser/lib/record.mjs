/**
 * Runs in the page before its own scripts, and notes in `window.seen` what a test could be too slow to see: every state that was shown, in
 * order, and what was asked of the browser. It changes nothing, unless a test sets `window.audioContextOptions`.
 */
export function record() {
  const seen = (window.seen = { states: [], violations: [], microphones: 0, contexts: 0, tracks: [], sockets: [], closeCodes: [] });
  document.addEventListener('securitypolicyviolation', (event) => seen.violations.push(`${event.violatedDirective} ${event.blockedURI}`));

  const one = (selector) => document.querySelector(selector);
  const words = (element) => (element ? element.textContent.replace(/\s+/g, ' ').trim() : null);
  const look = () => {
    if (!one('#talk')) return;
    const last = [...document.querySelectorAll('[data-turn]')].at(-1);
    const state = {
      connection: one('#connection')?.dataset.state,
      connectionWord: words(one('#connection')),
      session: one('#session')?.dataset.state,
      sessionWord: words(one('#session')),
      talk: !one('#talk').disabled,
      mocked: !one('#mocked').disabled,
      stop: !one('#stop').disabled,
      stopWord: words(one('#stop span')),
      partial: one('#partial').hidden ? '' : one('#partial').textContent,
      user: last?.querySelector('[data-who="user"]')?.textContent ?? '',
      agent: last?.querySelector('[data-who="agent"]')?.textContent ?? '',
      banner: words(one('#banner p')) ?? '',
      action: words(one('#banner button')) ?? '',
      title: words(one('.helm .title')) ?? '',
      small: words(one('.helm .small')) ?? '',
      status: words(one('#status')) ?? '',
    };
    const key = JSON.stringify(state);
    if (key === seen.last) return;
    seen.last = key;
    seen.states.push(state);
  };
  new MutationObserver(look).observe(document, { subtree: true, childList: true, attributes: true, characterData: true });

  const announced = (seen.announced = []);
  new MutationObserver((changes) => {
    for (const { addedNodes } of changes) {
      for (const node of addedNodes) {
        const element = node instanceof Element ? node : node.parentElement;
        const paragraphs = element?.querySelectorAll('#announcements p') ?? [];
        for (const said of paragraphs.length > 0 ? paragraphs : element?.closest('#announcements p') ? [element] : []) announced.push(words(said));
      }
    }
  }).observe(document, { subtree: true, childList: true });

  const devices = navigator.mediaDevices;
  if (devices) {
    const ask = devices.getUserMedia.bind(devices);
    devices.getUserMedia = async (constraints) => {
      seen.microphones++;
      const stream = await ask(constraints);
      seen.tracks.push(...stream.getTracks());
      return stream;
    };
  }
  window.WebSocket = class extends window.WebSocket {
    constructor(...args) {
      super(...args);
      seen.sockets.push(this);
      this.addEventListener('close', ({ code }) => seen.closeCodes.push(code));
    }
  };
  window.AudioContext = class extends window.AudioContext {
    constructor(options) {
      super({ ...options, ...window.audioContextOptions });
      seen.contexts++;
      seen.sampleRate = this.sampleRate;
    }
  };
}
