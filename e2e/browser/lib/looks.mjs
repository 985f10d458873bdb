// What can be measured of how the page looks and is read aloud.
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('../../out/', import.meta.url));
mkdirSync(folder, { recursive: true });

/** Takes a picture into e2e/out, for people. */
export async function picture(page, name) {
  await settled(page);
  await page.screenshot({ path: `${folder}${name}.png` });
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Waits until what fades or slides in has come to its end. */
export const settled = (page) =>
  page.evaluate(async () => {
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    const ending = document.getAnimations().filter((animation) => animation.effect.getComputedTiming().endTime !== Infinity);
    await Promise.allSettled(ending.map((animation) => animation.finished));
  });

/** What axe finds that is serious or critical, in one line each. */
export async function barriers(page) {
  await settled(page);
  await page.evaluate(`window.axe || eval(${JSON.stringify(axe)})`);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.target.join(' ')}: ${node.failureSummary.replace(/\s+/g, ' ')}`));
}

/** What is out of the window to the right or the left, or could be scrolled there. */
export async function sideways(page) {
  await settled(page);
  return page.evaluate(() => {
    const wide = [];
    for (const element of document.querySelectorAll('html, body, #conversation, #settings, .groups, .helm, .bar')) {
      if (element.scrollWidth > element.clientWidth) wide.push(`${element.id || element.className || element.tagName} scrolls`);
    }
    for (const element of document.querySelectorAll('button, #connection, #banner p, .helm .title, .helm .small, #partial, .said')) {
      const { left, right, width } = element.getBoundingClientRect();
      if (width > 1 && (left < 0 || right > innerWidth + 0.5)) wide.push(`${element.id || element.className} from ${left} to ${right}`);
    }
    return wide;
  });
}

/** Text whose contrast, computed from the colours that are rendered, is below 4.5 to 1. */
export async function faint(page) {
  await settled(page);
  return page.evaluate(() => {
    const canvas = Object.assign(document.createElement('canvas'), { width: 1, height: 1 }).getContext('2d', { willReadFrequently: true });
    const rgba = (colour) => {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = colour;
      canvas.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
      return { r, g, b, a: a / 255 };
    };
    const over = (top, under) => ({
      r: top.r * top.a + under.r * (1 - top.a),
      g: top.g * top.a + under.g * (1 - top.a),
      b: top.b * top.a + under.b * (1 - top.a),
      a: 1,
    });
    const light = ({ r, g, b }) => {
      const [x, y, z] = [r, g, b].map((v) => ((v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
      return 0.2126 * x + 0.7152 * y + 0.0722 * z;
    };
    const behind = (element) => {
      const layers = [];
      for (let e = element; e; e = e.parentElement) layers.unshift(rgba(getComputedStyle(e).backgroundColor));
      return layers.reduce((under, top) => over(top, under), { r: 255, g: 255, b: 255, a: 1 });
    };
    const found = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const element = node.parentElement;
      if (!node.data.trim() || !element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
      if (element.closest('.unseen, .skip, [inert], noscript')) continue;
      const style = getComputedStyle(element);
      const ground = behind(element);
      const [a, b] = [light(over(rgba(style.color), ground)), light(ground)];
      const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      if (ratio < 4.5) found.push(`${node.data.trim().slice(0, 40)}: ${ratio.toFixed(2)}`);
    }
    return found;
  });
}

/** Disabled controls that do not say why. */
export function unexplained(page) {
  return page.evaluate(() =>
    [...document.querySelectorAll('button:disabled')]
      .filter((button) => {
        const ids = button.getAttribute('aria-describedby')?.split(' ') ?? [];
        return !ids.some((id) => document.getElementById(id)?.textContent.trim());
      })
      .map((button) => button.id || button.textContent),
  );
}

/** Presses Tab until the focus comes round, and returns each stop with its ring. */
export async function tabStops(page, key = 'Tab') {
  const stops = [];
  for (let i = 0; i < 40; i++) {
    await page.keyboard.press(key);
    const stop = await page.evaluate(() => {
      const element = document.activeElement;
      if (!element || element === document.body) return null;
      const style = getComputedStyle(element);
      const { left, top, right, bottom } = element.getBoundingClientRect();
      return {
        name: element.id || element.getAttribute('aria-label') || (element.labels?.[0] ?? element).textContent.trim(),
        ring: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2 ? style.outlineColor : 'none',
        inside: left >= -1 && top >= -1 && right <= innerWidth + 1 && bottom <= innerHeight + 1,
      };
    });
    if (stops.some(({ name }) => name === stop?.name)) break;
    if (stop) stops.push(stop); // between the last and the first there is the page itself
  }
  return stops;
}
