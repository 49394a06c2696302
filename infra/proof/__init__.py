"""`make aws-proof`: deploys hooksaga into the caller's account, loads and disturbs it, checks it, and destroys it."""
