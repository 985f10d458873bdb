package auth

// SigningKey is what a key signs its tokens with.
func SigningKey(name, secret string) []byte { return newKey(name, secret).sign }

// Remembered is how many tokens' usage is kept.
func (a *Authority) Remembered() int { return len(a.usage) }

// Addresses is how many addresses have failures.
func (t *Throttle) Addresses() int { return len(t.failures) }
