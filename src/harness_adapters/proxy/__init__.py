"""Audit proxy: the guard between any agent and any model server, on OpenAI's and Anthropic's wires.

No byte of a tool call leaves before its verdict; text streams through as it comes. It judges by the
same code as the gateway and knows nothing of training.

    async with Proxy(ProxySettings("http://127.0.0.1:8000"), Judging(policy, audit)) as proxy:
        await serve(proxy, listening("127.0.0.1", 0))
"""

from harness_adapters.proxy.app import Proxy, ProxySettings
from harness_adapters.proxy.judging import Judging
from harness_adapters.proxy.serving import listening, serve

__all__ = ["Judging", "Proxy", "ProxySettings", "listening", "serve"]
