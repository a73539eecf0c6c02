"""Static files that are served together as one. `settings.py` imports it."""

# The pages on which a notification is written have many parts, and load each kind of file once.
STATIC_BUNDLES = {
    "console/composing.css": ("console/compose.css", "console/segments.css"),
    "console/composing.js": (
        "console/tags.js",
        "console/values.js",
        "console/conditions.js",
        "console/rules.js",
        "console/emoji.js",
        "console/languages.js",
        "console/personal.js",
        "console/preview.js",
        "console/content.js",
        "console/drafts.js",
        "console/compose.js",
    ),
}
