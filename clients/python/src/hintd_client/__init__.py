"""Asks hintd where containers should go.

>>> client = Client("127.0.0.1:8470")
>>> request = Request("application_1700000000000_0001", [Group("map", 4, memory_mb=2048)])
>>> answer = client.hints_or_none(request, patience=0.5)
>>> [(hint.group, hint.host, hint.count) for hint in answer.hints]  # empty: ask YARN as ever
"""

from .client import Client
from .errors import HintdError, OutOfTime, Refused
from .following import Following
from .messages import Answer, Attempt, Edge, Group, Hint, Request

__all__ = [
    "Answer",
    "Attempt",
    "Client",
    "Edge",
    "Following",
    "Group",
    "Hint",
    "HintdError",
    "OutOfTime",
    "Refused",
    "Request",
]
