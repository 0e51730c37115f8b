"""How a command ends: 0 when all is written, 1 with one sentence on what is wrong, 2 for usage, 130 after Ctrl-C."""

from __future__ import annotations

import errno
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn

FAILED, STOPPED, PIPE_CLOSED = 1, 130, 141


class Stopped(BaseException):
    """Ctrl-C. Not a KeyboardInterrupt: solvers end with their best fit so far on that one, and work would go on."""


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """The command, with every error turned into a sentence on stderr and an exit code; its `debug` shows tracebacks."""

    @wraps(command)
    def run(*arguments: Any, debug: bool, **options: Any) -> None:
        before = signal.getsignal(signal.SIGINT)
        if before is signal.default_int_handler:  # not where a shell has it ignored
            signal.signal(signal.SIGINT, _stop)
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _warn
                command(*arguments, debug=debug, **options)
            sys.stdout.flush()
        except (Stopped, KeyboardInterrupt):
            _end("Interrupted; no file was written.", STOPPED)
        except BrokenPipeError:  # whoever read our output has had enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise SystemExit(PIPE_CLOSED) from None
        except Exception as error:  # whatever it is, a user gets a sentence and a code
            if debug:
                traceback.print_exc()
            _end(_sentence(error), FAILED)
        finally:
            signal.signal(signal.SIGINT, before)

    return run


def _stop(*_: Any) -> NoReturn:
    raise Stopped


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    _print_error(str(message))


def _end(sentence: str, code: int) -> NoReturn:
    _print_error(sentence)
    raise SystemExit(code) from None


def _print_error(sentence: str) -> None:
    print(f"separatrix: {' '.join(sentence.split())}", file=sys.stderr)


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno is not None:
        if error.errno == errno.ENOENT and error.filename is not None and error.strerror == os.strerror(errno.ENOENT):
            return f"There is no file {error.filename}."
        return f"{error.filename or 'Writing failed'}: {error.strerror}."
    if isinstance(error, ValueError | OSError) or type(error) is ImportError:  # the library's own sentences
        return str(error)
    if isinstance(error, MemoryError):
        return "There is not enough memory for these data."
    kind = f"{type(error).__name__}: {error}"
    return (
        f"Something unexpected went wrong ({kind}). Please report it, with what the same command prints under --debug."
    )
