import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { App } from '../state/app';
import { Announcer } from './Announcer';
import { ApprovalAlert } from './ApprovalCard';
import { Artifacts, artifactsShown } from './Artifacts';
import { BannerRow } from './BannerRow';
import { Conversation } from './Conversation';
import { HelmRow } from './HelmRow';
import { SettingsDrawer } from './SettingsDrawer';
import { SignIn } from './SignIn';
import { TopBar } from './TopBar';
import { listenToKeys } from './keys';
import { wide } from './wide';

export function Page({ app }: { app: App }): JSX.Element {
  const opener = useRef<HTMLButtonElement>(null);
  const open = app.settingsOpen.value;
  const { signIn } = app.model.value;
  useEffect(() => listenToKeys(app), [app]);
  const close = (): void => {
    app.settingsOpen.value = false;
    // The bar is inert until the drawer is gone.
    requestAnimationFrame(() => opener.current?.focus());
  };
  return (
    <>
      {!signIn && (
        <a
          class="skip"
          href="#talk"
          inert={open}
          onClick={(event) => {
            event.preventDefault();
            (document.querySelector<HTMLElement>('#talk:not(:disabled)') ?? document.getElementById('conversation'))?.focus();
          }}
        >
          Skip to the talk control
        </a>
      )}
      <div class="frame" inert={open}>
        <TopBar app={app} opener={opener} />
        <BannerRow app={app} />
        {signIn ? (
          <SignIn app={app} asked={signIn} />
        ) : (
          <main class="talk" data-artifacts={!artifactsShown(app) ? 'none' : wide.value ? 'beside' : 'sheet'}>
            <h1 class="unseen">Talk</h1>
            <Conversation app={app} />
            <HelmRow app={app} />
            <Artifacts app={app} />
          </main>
        )}
      </div>
      {open && <SettingsDrawer app={app} onClose={close} />}
      <Announcer app={app} />
      {app.model.value.turns === 'agent' && <ApprovalAlert app={app} />}
    </>
  );
}
