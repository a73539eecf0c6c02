"""Static files that are served together as one. `settings.py` imports it."""

# The pages for writing a notification have many parts, and load one bundle of each kind of file.
STATIC_BUNDLES = {
    "console/first.js": ("console/texts.js", "console/times.js"),
    "console/composing.css": ("console/compose.css", "console/segments.css", "console/images.css"),
    "console/composing.js": (
        "console/tags.js",
        "console/values.js",
        "console/conditions.js",
        "console/rules.js",
        "console/emoji.js",
        "console/images.js",
        "console/languages.js",
        "console/personal.js",
        "console/preview.js",
        "console/content.js",
        "console/drafts.js",
        "console/compose.js",
    ),
}
