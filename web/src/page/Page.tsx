import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { App } from '../state/app';
import { Announcer } from './Announcer';
import { ApprovalAlert } from './ApprovalCard';
import { Artifacts, artifactsShown } from './Artifacts';
import { BannerRow } from './BannerRow';
import { Conversation } from './Conversation';
import { Elsewhere } from './Elsewhere';
import { HelmRow } from './HelmRow';
import { useSettings } from './settings';
import { SignIn } from './SignIn';
import { TopBar } from './TopBar';
import { listenToKeys } from './keys';
import { wide } from './wide';

export function Page({ app }: { app: App }): JSX.Element {
  const opener = useRef<HTMLButtonElement>(null);
  const Drawer = useSettings(app);
  const { signIn } = app.model.value;
  const view = app.view.value;
  useEffect(() => listenToKeys(app), [app]);
  const close = (): void => {
    app.settingsOpen.value = false;
    // The bar is inert until the drawer is gone.
    requestAnimationFrame(() => opener.current?.focus());
  };
  return (
    <>
      {!signIn && view === 'talk' && (
        <a
          class="skip"
          href="#talk"
          inert={Drawer !== null}
          onClick={(event) => {
            event.preventDefault();
            (document.querySelector<HTMLElement>('#talk:not(:disabled)') ?? document.getElementById('conversation'))?.focus();
          }}
        >
          Skip to the talk control
        </a>
      )}
      <div class="frame" inert={Drawer !== null}>
        <TopBar app={app} opener={opener} views />
        <BannerRow app={app} />
        {signIn ? (
          <SignIn app={app} asked={signIn} />
        ) : view !== 'talk' ? (
          <Elsewhere app={app} view={view} />
        ) : (
          <main class="talk" data-artifacts={!artifactsShown(app) ? 'none' : wide.value ? 'beside' : 'sheet'}>
            <h1 class="unseen">Talk</h1>
            <Conversation app={app} />
            <HelmRow app={app} />
            <Artifacts app={app} />
          </main>
        )}
      </div>
      {Drawer && <Drawer app={app} onClose={close} />}
      <Announcer app={app} />
      {app.model.value.turns === 'agent' && <ApprovalAlert app={app} />}
    </>
  );
}
