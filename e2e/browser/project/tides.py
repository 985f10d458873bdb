"""When the tide turns, in minutes after midnight."""

HIGH = [252, 997]


def next_high(now):
    # The one after the last is tomorrow's first.
    for high in HIGH:
        if high > now:
            return high
    return HIGH[0]
