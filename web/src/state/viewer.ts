import type { Artifact } from './artifacts';

/** What the user did with the artifacts. */
export interface Viewer {
  /** null until the user opens or closes them: then there is room for them, or there is not. */
  open: boolean | null;
  /** The one that the user looks at; null while the newest is shown. */
  chosen: number | null;
  /** Whether the focus is among them, so that what is shown must not change by itself. */
  focused: boolean;
}

export const unwatched: Viewer = { open: null, chosen: null, focused: false };

/** The one that is shown: the chosen one as long as it is there, or the newest. */
export function shownOf(viewer: Viewer, artifacts: readonly Artifact[]): Artifact | null {
  return artifacts.find((a) => a.id === viewer.chosen) ?? artifacts.at(-1) ?? null;
}

/** How many came after the one that the user chose to look at. */
export function newer(viewer: Viewer, artifacts: readonly Artifact[]): number {
  const at = artifacts.findIndex((a) => a.id === viewer.chosen);
  return at < 0 ? 0 : artifacts.length - 1 - at;
}

/** To be called with the artifacts as they were, when one comes. */
export function onArtifact(viewer: Viewer, before: readonly Artifact[]): Viewer {
  if (!viewer.focused || viewer.open === false) return viewer;
  return { ...viewer, chosen: shownOf(viewer, before)?.id ?? null };
}

/** Whoever chooses the newest one follows what comes. */
export function choose(viewer: Viewer, artifacts: readonly Artifact[], id: number): Viewer {
  return { ...viewer, chosen: artifacts.at(-1)?.id === id ? null : id };
}
