import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { ticks, type LevelTrace } from '../audio/levels';
import type { App } from '../state/app';

const size = 144;
const inner = 54;
const longest = 17;

/** Thirty frames a second at most; four where motion is to be reduced. */
const frameMs = 1000 / 30;
const calmFrameMs = 250;
const steps = 8;

/** The last 2.4 s of the level, of the voice that is heard or of the one that speaks, newest at twelve o'clock, paling with age. It is there only while there is a level to show. */
export function LevelRing({ app }: { app: App }): JSX.Element {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const element = canvas.current!;
    const context = element.getContext('2d');
    if (!context) return;
    const scale = Math.min(3, window.devicePixelRatio || 1);
    element.width = element.height = size * scale;
    context.scale(scale, scale);
    const colour = getComputedStyle(element).color;
    const calm = matchMedia('(prefers-reduced-motion: reduce)').matches;
    let drawn = -Infinity;
    let frame = 0;
    const draw = (now: number): void => {
      frame = requestAnimationFrame(draw);
      if (now - drawn < (calm ? calmFrameMs : frameMs) - 2) return;
      drawn = now;
      context.clearRect(0, 0, size, size);
      context.strokeStyle = colour;
      if (calm) drawSteps(context, app.levels);
      else drawTicks(context, app.levels);
    };
    frame = requestAnimationFrame(draw);
    return () => cancelAnimationFrame(frame);
  }, [app]);
  return <canvas ref={canvas} aria-hidden="true" />;
}

function drawTicks(context: CanvasRenderingContext2D, levels: LevelTrace): void {
  context.lineWidth = 2.25;
  context.lineCap = 'round';
  for (let age = 0; age < ticks; age++) {
    const angle = (-age * 2 * Math.PI) / ticks;
    const outer = inner + 3 + (longest - 3) * levels.at(age);
    context.globalAlpha = 1 - (0.8 * age) / ticks;
    context.beginPath();
    context.moveTo(size / 2 + inner * Math.sin(angle), size / 2 - inner * Math.cos(angle));
    context.lineTo(size / 2 + outer * Math.sin(angle), size / 2 - outer * Math.cos(angle));
    context.stroke();
  }
}

/** The calm form: a bar of eight steps, laid round the control. */
function drawSteps(context: CanvasRenderingContext2D, levels: LevelTrace): void {
  let loudest = 0;
  for (let age = 0; age < calmFrameMs / (2400 / ticks); age++) loudest = Math.max(loudest, levels.at(age));
  const lit = Math.round(loudest * steps);
  const gap = 0.08;
  context.lineWidth = 6;
  context.lineCap = 'butt';
  for (let i = 0; i < steps; i++) {
    const from = -Math.PI / 2 + (i * 2 * Math.PI) / steps;
    context.globalAlpha = i < lit ? 1 : 0.2;
    context.beginPath();
    context.arc(size / 2, size / 2, 60, from + gap, from + (2 * Math.PI) / steps - gap);
    context.stroke();
  }
}
