"""A template with a value in most fields, and requests about it."""

# jsonb would sort the names of `data`.
CONTENT = {
    "title": "Your order",
    "body": "It left our warehouse.",
    "url": "https://shop.example/orders",
    "data": {"order": "4711", "a": "1", "zone": "b"},
    "ttl": 0,
    "urgency": "high",
    "actions": [{"id": "track", "title": "Track it"}],
    "web": {"require_interaction": True, "image": None},
    "android": {"sound": "ding", "title": None},
    "ios": {"badge": 0, "sound": {"name": "ding.wav", "volume": 0.5}},
    "translations": {"pt-BR": {"title": "Seu pedido", "actions": {"track": "Rastrear"}}},
}
GIVEN = {"name": "Order shipped", "content": CONTENT}
LATER = "2031-01-01T00:00:00Z"


def path(owner, *parts):
    return "/".join([f"/channel/{owner.channel.id}/templates", *map(str, parts)])


def created(owner, body=GIVEN, **headers):
    response = owner.call("POST", path(owner), body, **headers)
    assert response.status_code == 201, response.content
    return response.json()
