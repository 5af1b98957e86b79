"""The order of the work: plan, claim, publish, settle, recover, sleep. No SQL and no broker details."""
