"""The verbs, by what they are about. `onebeat.api` has them all."""
