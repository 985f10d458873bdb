import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { App } from '../state/app';
import type { Phone } from '../state/phone';
import { Announcer } from './Announcer';
import { ApprovalAlert } from './ApprovalCard';
import { Artifacts, artifactsShown } from './Artifacts';
import { BannerRow } from './BannerRow';
import { Conversation } from './Conversation';
import { FollowGroup } from './FollowGroup';
import { HelmRow } from './HelmRow';
import { JoinForm } from './JoinForm';
import { RoomBar } from './RoomBar';
import { useSettings } from './settings';
import { SignIn } from './SignIn';
import { Subtitles } from './Subtitles';
import { TopBar } from './TopBar';
import { listenToKeys } from './keys';
import { wide } from './wide';

/** What the page does with its room. */
export interface RoomActions {
  join(): void;
  leave(): void;
  /** Asks who else there is to follow. */
  look(): void;
  /** Has the work of one of them shown, or not any more. */
  follow(id: string, on: boolean): void;
}

/** The page as a phone: first which room, then the talk view with the room as its transport. */
export function PhonePage({ app, phone, actions }: { app: App; phone: Phone; actions: RoomActions }): JSX.Element {
  const opener = useRef<HTMLButtonElement>(null);
  const Drawer = useSettings(app);
  const { signIn } = app.model.value;
  const joined = phone.joined.value;
  useEffect(() => listenToKeys(app), [app]);
  const close = (): void => {
    app.settingsOpen.value = false;
    requestAnimationFrame(() => opener.current?.focus());
  };
  return (
    <>
      <div class="frame" data-view="phone" inert={Drawer !== null}>
        <TopBar app={app} opener={opener} />
        {joined && !signIn ? <RoomBar phone={phone} onLeave={actions.leave} /> : <div />}
        {joined ? <BannerRow app={app} /> : <div />}
        {signIn ? (
          <SignIn app={app} asked={signIn} />
        ) : !joined ? (
          <JoinForm phone={phone} onJoin={actions.join} />
        ) : (
          <main class="talk" data-artifacts={!artifactsShown(app) ? 'none' : wide.value ? 'beside' : 'sheet'}>
            <h1 class="unseen">Talk in a room</h1>
            {phone.whole.value ? <Conversation app={app} /> : <Subtitles app={app} phone={phone} />}
            <HelmRow app={app} />
            <Artifacts app={app} />
          </main>
        )}
      </div>
      {Drawer && (
        <Drawer app={app} inRoom onClose={close}>
          {joined && <FollowGroup app={app} phone={phone} onLook={actions.look} onFollow={actions.follow} />}
        </Drawer>
      )}
      <Announcer app={app} />
      <ApprovalAlert app={app} />
    </>
  );
}
