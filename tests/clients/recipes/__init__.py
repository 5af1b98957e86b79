"""What each client needs and what is looked at: one module for each, run by tests.clients.story.

The module is imported here for its constants, and in the client's project for its functions, so it imports nothing
but the standard library at its top. Constants (see tests.clients.recipe.Recipe for what they mean): PACKAGES, DID,
and where the project is another than the usual one the rest. Functions, run in the project, one process for each line
of the story in which they stand:

    build()    under django-celery-beat: makes what the client makes. The task "before" is due each second
    look()     what the client shows, as JSON can hold it; the same before and after the switch
    edit()     through the client, while a scheduler runs: "before" is no longer sent, "after" is due each second
"""
