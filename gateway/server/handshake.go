package server

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"vela/protocol"
	"vela/session"
)

// shakeHands waits for the first event of a client of version 2 and finds or makes its session. A message that is not
// one of the two is answered with an error, and so are settings that cannot be had; the client may try again in time.
func (s *Server) shakeHands(ctx context.Context, k *socket, turns session.Turns, who *caller) (*session.Session, session.Hello, error) {
	late := time.AfterFunc(s.cfg.FirstWord, func() { k.out.close(errSilent.code, errSilent.why) })
	defer late.Stop()
	for {
		in, err := s.read(ctx, k)
		if err != nil {
			return nil, session.Hello{}, err
		}
		sess, hello, err := s.greeted(in, turns, who)
		var no *dismissal
		switch {
		case err == nil:
			return sess, hello, nil
		case errors.As(err, &no):
			k.dismiss(in.id, no)
			return nil, hello, &badFrame{no.code, no.reason}
		}
		k.refuse(in.id, err)
	}
}

// greeted is what a first event gets. An error of type *dismissal ends the connection, any other does not.
func (s *Server) greeted(in incoming, turns session.Turns, who *caller) (*session.Session, session.Hello, error) {
	if in.bad != nil {
		return nil, session.Hello{}, in.bad
	}
	switch m := in.message.(type) {
	case protocol.SessionStart:
		sess, err := s.start(m, turns, who)
		return sess, session.Hello{}, err
	case protocol.SessionResume:
		sess, ok := s.sessions.find(m.Token)
		if !ok {
			return nil, session.Hello{}, gone()
		}
		return sess, session.Hello{Resume: true, Token: m.Token, After: m.After, Allowance: who.audio()}, nil
	}
	return nil, session.Hello{}, wrong{protocol.CodeInvalidMessage, "Send session.start or session.resume first."}
}

// start makes a session with the settings that are asked for, or none. The caller needs a place for it: one that
// resumes has that of the session.
func (s *Server) start(ask protocol.SessionStart, turns session.Turns, who *caller) (*session.Session, error) {
	token := newResumeToken()
	sess := s.cfg.NewSession(NewSession{Version: 2, Turns: turns, Token: token, Only: who.only(), Audio: who.audio(), Follows: who.follows(), Emits: who.emits()})
	if err := sess.Configure(ask); err != nil {
		return nil, err
	}
	leave, no := who.enter()
	if no != nil {
		return nil, no
	}
	if _, ok := s.sessions.run(session.HashToken(token), func() *session.Session { return sess }, leave); !ok {
		leave()
		return nil, noPlace(limitWords)
	}
	return sess, nil
}

// Adopt runs a session that another process has kept; the hash is that of the token that resumes it. It is false when as
// many sessions run as may, or the server drains. It is called before Serve.
func (s *Server) Adopt(sess *session.Session, token [sha256.Size]byte) bool {
	if !s.sessions.enter() {
		return false
	}
	defer s.sessions.exit()
	_, ok := s.sessions.run(token, func() *session.Session { return sess }, func() {})
	return ok
}

// wrong is an error that knows how a client is told of it.
type wrong struct {
	code  protocol.Code
	words string
}

func (w wrong) Error() string       { return w.words }
func (w wrong) Code() protocol.Code { return w.code }

// gone is for a client that resumes what is not there.
func gone() *dismissal {
	return &dismissal{
		told: &protocol.Error{
			Code:      protocol.CodeSessionGone,
			Message:   "That session has ended, or never was. Send session.start on a new connection.",
			Retryable: protocol.CodeSessionGone.Retryable(),
		},
		code: protocol.CloseSessionGone, reason: "the session to resume is gone",
	}
}

// dismiss tells a client that has no session yet why it gets none; the connection's end closes it with the code.
func (k *socket) dismiss(id string, no *dismissal) {
	if no.told != nil {
		told := *no.told
		told.Ref = id
		k.out.put(session.Event{Message: told})
	}
}

// refuse tells a client that has no session yet why its message did nothing.
func (k *socket) refuse(id string, err error) {
	var known interface {
		error
		Code() protocol.Code
	}
	told := protocol.Error{Code: protocol.CodeInternal, Message: "Something went wrong in the gateway.", Ref: id}
	if errors.As(err, &known) {
		told.Code, told.Message = known.Code(), known.Error()
	}
	told.Retryable = told.Code.Retryable()
	k.out.put(session.Event{Message: told})
}
