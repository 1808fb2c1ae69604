"""The study `thesis`: a published comparison of markers and queues, repeated in full."""
