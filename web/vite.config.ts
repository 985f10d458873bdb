import { defineConfig } from 'vitest/config';

export default defineConfig({
  build: {
    target: 'es2022',
    // Light and dark are told apart by light-dark(), which must reach the browser as it is written.
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    // The page runs under default-src 'self': a data: address would be refused.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rolldownOptions: { input: ['index.html', 'phone.html'] },
    chunkSizeWarningLimit: 600, // LiveKit; size.mjs has the budgets
  },
  worker: { format: 'es' },
  server: {
    // vite's own server is for working on the page; the gateway beside it answers the rest.
    proxy: {
      '/api': 'http://127.0.0.1:8080',
      '/ws': { target: 'ws://127.0.0.1:8080', ws: true },
    },
  },
  test: { environment: 'happy-dom', include: ['src/**/*.test.{ts,tsx}', 'protocol/**/*.test.ts'] },
});
