import type { ComponentChildren, ComponentType } from 'preact';
import { useEffect } from 'preact/hooks';
import type { App } from '../state/app';
import { later } from './later';

type Drawer = ComponentType<{ app: App; inRoom?: boolean; onClose(): void; children?: ComponentChildren }>;

/** The settings come when they are opened first. */
export const settings = later<Drawer>(() => import('./SettingsDrawer').then((it) => it.SettingsDrawer));

/** What draws the settings while they are open; null while they are not. */
export function useSettings(app: App): Drawer | null {
  const open = app.settingsOpen.value;
  const drawer = settings.value;
  useEffect(() => {
    if (!open) return;
    // Where they cannot be had the connection is lost as well, and the banner says so.
    void settings.want().then(() => {
      if (settings.value === 'none') app.settingsOpen.value = false;
    });
  }, [open]);
  return open && drawer !== 'none' ? drawer : null;
}
