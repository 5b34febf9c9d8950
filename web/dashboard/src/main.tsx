import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { App } from './app/App';
import { beginSettings } from './app/settings';
import { SignedIn } from './session/SignedIn';
import './app/theme.css';
import './app/controls.css';
import './app/cards.css';

const root = document.getElementById('app');
if (!root) throw new Error('index.html has no #app');
beginSettings();
createRoot(root).render(
  <StrictMode>
    <SignedIn>
      <App />
    </SignedIn>
  </StrictMode>,
);
