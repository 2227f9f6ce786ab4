"""One call, from its request to its outcome: admission, deadline, waiting, progress, cancelling. No I/O."""
