"""The lines that a site pastes, as in docs/browser.md."""

import json

from pushsvc.sdk.files import script

_PAGE = """\
<button id="push-subscribe">Get notifications</button>
<script src="{base_url}/sdk/{name}"
  integrity="{integrity}"
  crossorigin="anonymous"></script>
<script>
  const push = pushsvc.init({{
    channel: {channel},
    serviceWorker: "/push-sw.js",
  }});
  document.getElementById("push-subscribe").addEventListener("click", async () => {{
    try {{
      await push.subscribe();
    }} catch (error) {{
      alert(error.message);
    }}
  }});
</script>
"""


def snippet(base_url: str, channel_id: object) -> str:
    """HTML for the site's page: a button that subscribes. `base_url` is the service's origin."""
    name, file = script()
    return _PAGE.format(
        base_url=base_url,
        name=name,
        integrity=file.integrity,
        channel=json.dumps(str(channel_id)),
    )


def worker_snippet(base_url: str) -> str:
    """The site's service worker, at /push-sw.js on the site's own origin."""
    return f'importScripts("{base_url}/sdk/push-sw.js");\n'
