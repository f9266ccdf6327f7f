"""Many workers: what each can run, how captures are sent to them, and who puts right what was lost on the way."""
