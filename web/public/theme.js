// Runs before the first paint, so that a chosen theme does not flash the other one. The settings write the same key.
try {
  const theme = localStorage.getItem('vela.theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
} catch {
  // Storage may be closed to the page; then the system's theme holds.
}
