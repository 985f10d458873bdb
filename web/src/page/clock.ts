import { useEffect, useState } from 'preact/hooks';

/** The clock in ms; while `running`, what shows it is drawn anew once a second. */
export function useClock(running: boolean): number {
  const [, tick] = useState(0);
  useEffect(() => {
    if (!running) return;
    const id = setInterval(() => tick((n) => n + 1), 1000);
    return () => clearInterval(id);
  }, [running]);
  return Date.now();
}

/** A time span as 0:07. */
export function spanWords(ms: number): string {
  const s = Math.max(0, Math.floor(ms / 1000));
  return `${Math.floor(s / 60)}:${String(s % 60).padStart(2, '0')}`;
}

/** A time of day as 14:02. */
export function timeWords(ms: number): string {
  const d = new Date(ms);
  return `${String(d.getHours()).padStart(2, '0')}:${String(d.getMinutes()).padStart(2, '0')}`;
}
