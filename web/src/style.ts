// In this order: what comes later counts where two say the same.
import './style/tokens.css';
import './style/base.css';
import './style/frame.css';
import './style/talk.css';
import './style/agent.css';
import './style/artifacts.css';
import './style/helm.css';
import './style/settings.css';
import './style/sign-in.css';
import './style/narrow.css';
import './style/preferences.css';
