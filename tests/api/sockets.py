"""What the kernel buffers for the connections of a server on this machine."""

from pathlib import Path

from tests.pipeline.support import until


def unsent(port):
    """The bytes that the server's kernel buffers for each connection, by the client's port. The
    kernel ends a connection that reads nothing, and the client does not notice."""
    return {client: queues[0] for client, queues in kernel_queues(port).items()}


def kernel_queues(port):
    """The bytes not sent and not read at the server's end of each connection, by the client's
    port."""
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    parts = [[text.partition(":") for text in row[1:5]] for row in rows]
    return {
        int(remote[2], 16): (int(queues[0], 16), int(queues[2], 16))
        for local, remote, _, queues in parts
        if int(local[2], 16) == port
    }


def sent_in_pieces(connection, data, pieces=20):
    """Sends each piece once the server has read those before it, or has closed. The caller reads
    the answer afterwards. Fails if the server closed too early."""
    port, client = connection.getpeername()[1], connection.getsockname()[1]
    size = len(data) // pieces + 1
    for start in range(0, len(data), size):
        connection.sendall(data[start : start + size])
        until(lambda: kernel_queues(port).get(client, (0, 0))[1] == 0, seconds=60)
    return connection
