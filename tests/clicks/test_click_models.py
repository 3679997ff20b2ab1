"""What all models share: towers, files, what they refuse, and what they import."""

from __future__ import annotations

import inspect
import subprocess
import sys

import jax
import numpy as np
import pytest
from click_worlds import random_model, simulated, sized

from elute.clicks import BY_GRADIENTS, MLP, MODELS, NCM, PBM, UBM, ClickModel, Linear, Sessions, Training, model_of
from elute.errors import EluteError, NotFitted
from elute.simulation.shown import ShownPages
from elute.simulation.users import build_user

DOCUMENTS, RANKS = 12, 4
USER = build_user("dbn")
SESSIONS, _, _ = simulated(USER, 600, DOCUMENTS, RANKS, 1, 2)
SHORT = Training(epochs=4, batch=128, learning_rate=0.05)

pytestmark = pytest.mark.usefixtures("quick_compiling")


def same(one, other) -> None:
    jax.tree.map(np.testing.assert_array_equal, one, other)


@pytest.mark.parametrize("tower", [Linear(), MLP((8,))])
def test_towers_learn_relevance_from_features(tower) -> None:
    """Documents never shown in training get the relevance their features say."""
    rng = np.random.default_rng(2)
    features = rng.normal(size=(60, 3))
    relevance = 1 / (1 + np.exp(-features @ [1.5, -1.0, 0.0]))
    doc = rng.integers(0, 40, (3000, RANKS))
    clicks = build_user("pbm").draw_clicks(ShownPages(relevance[doc], np.full(3000, RANKS)), rng)
    model = PBM(60, RANKS, tower=tower, features=features)
    model.fit(Sessions.from_arrays(doc, clicks), training=Training(epochs=15, batch=256, learning_rate=0.03))
    assert np.corrcoef(model.relevance_values_[40:], relevance[40:])[0, 1] > 0.95


def test_what_is_saved_is_what_is_loaded(tmp_path) -> None:
    for name in MODELS:
        model = random_model(name, 1)
        model.save(tmp_path / f"{name}.npz")
        same(model.params_, sized(name).load(tmp_path / f"{name}.npz").params_)
    with pytest.raises(EluteError, match="belongs to"):
        PBM(DOCUMENTS, RANKS).load(tmp_path / "ubm.npz")
    (tmp_path / "broken.npz").write_bytes(b"no archive")
    with pytest.raises(EluteError, match="cannot be read"):
        PBM(DOCUMENTS, RANKS).load(tmp_path / "broken.npz")


def test_models_by_gradients_are_those_without_an_exact_fit() -> None:
    classes = {name: type(sized(name)) for name in MODELS}
    without = {name for name, model in classes.items() if model._fit_on_counts is ClickModel._fit_on_counts}
    assert without == set(BY_GRADIENTS)


@pytest.mark.parametrize(("name", "limit"), [("ubm", "product._ROUNDS"), ("sdbn", "chain_em._CYCLES")])
def test_a_fit_says_whether_its_iterations_were_enough(name: str, limit: str, monkeypatch) -> None:
    steps = []
    model = model_of(name)(DOCUMENTS, RANKS, prior=None).fit(SESSIONS, progress=lambda *at: steps.append(at[1]))
    assert model.converged_ and model.iterations_ == max(steps) > 2
    monkeypatch.setattr(f"elute.clicks.exact.{limit}", 2)
    again = model.fit(SESSIONS)
    assert not again.converged_ and again.iterations_ == 2


def test_a_model_says_that_it_is_not_fitted(tmp_path) -> None:
    """As count models do; whatever is asked of it, by attribute or by verb."""
    message = r"UBM has no 'params_' before it is fitted; call fit\(sessions\) or load\(path\) first"
    for ask in (
        lambda model: model.predict_clicks(SESSIONS),
        lambda model: model.predict_conditional_clicks(SESSIONS),
        lambda model: model.log_likelihood(SESSIONS),
        lambda model: model.sample(jax.random.key(0), SESSIONS),
        lambda model: model.save(tmp_path / "nothing.npz"),
    ):
        with pytest.raises(NotFitted, match=message):
            ask(UBM(DOCUMENTS, RANKS))
    for name in MODELS:
        unfitted = sized(name)
        for attribute in ("relevance_values_", "iterations_", "converged_", "history_", "best_epoch_"):
            assert not hasattr(unfitted, attribute), (name, attribute)
        with pytest.raises(
            EluteError, match=f"{type(unfitted).__name__} has no 'relevance_values_' before it is fitted"
        ):
            _ = unfitted.relevance_values_
    with pytest.raises(AttributeError, match="'UBM' object has no attribute 'relevance'"):
        _ = UBM(DOCUMENTS, RANKS).relevance


def test_a_fit_gives_the_model_back_with_names_that_end_in_an_underscore(tmp_path) -> None:
    model = UBM(DOCUMENTS, RANKS)
    assert model.fit(SESSIONS) is model
    assert model.relevance_values_.shape == model.attraction_.shape == (DOCUMENTS,)
    assert model.examination_.shape == (RANKS, RANKS)
    assert (model.history_, model.best_epoch_) == ([], 0)
    given = set(inspect.signature(UBM).parameters) | {"queries", "structure"}
    assert {name for name in vars(model) if not name.startswith("_")} - given == {
        "params_", "iterations_", "converged_", "priors_", "history_", "best_epoch_",
    }  # fmt: skip
    model.save(tmp_path / "model.npz")
    assert not hasattr(model.load(tmp_path / "model.npz"), "iterations_")  # of a fit that these are not from


def test_models_print_their_parameters() -> None:
    assert repr(PBM(12, 4)) == "PBM(documents=12, ranks=4, tower=Embedding(), features=None, prior='fitted')"
    with_features = PBM(12, 4, tower=MLP((8,)), features=np.zeros((12, 3)), prior=None)
    assert repr(with_features) == (
        "PBM(documents=12, ranks=4, tower=MLP(hidden=(8,)), features=<array of 12 × 3>, prior=None)"
    )
    assert repr(NCM(12, 4, queries=3)) == (
        "NCM(documents=12, ranks=4, queries=3, tower=Embedding(), features=None, samples=128)"
    )
    for name in MODELS:
        assert repr(sized(name)).startswith(f"{type(sized(name)).__name__}(documents=7, ranks=5")


def test_only_sizes_are_given_by_position() -> None:
    for name in MODELS:
        parameters = inspect.signature(model_of(name)).parameters.values()
        assert [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY] == ["documents", "ranks"]


def refused(match: str, act) -> None:
    with pytest.raises(EluteError, match=match) as caught:
        act()
    assert "\n" not in str(caught.value)


def test_what_cannot_be_used_is_refused_in_one_line(tmp_path) -> None:
    one = np.zeros((3, 2))
    fit = PBM(DOCUMENTS, RANKS).fit
    refused("document id 12", lambda: fit(Sessions.from_arrays(one + 12, one)))
    refused("document id -1", lambda: fit(Sessions.from_arrays(one - 1, one)))
    refused("ranks=5", lambda: fit(Sessions.from_arrays(np.zeros((1, 5)), np.zeros((1, 5)))))
    refused("0 or 1", lambda: fit(Sessions.from_arrays(one, one + 2)))
    refused("query id 1", lambda: NCM(DOCUMENTS, RANKS).fit(Sessions.from_arrays(one, one, query=[0, 0, 1])))
    refused("sessions, places", lambda: Sessions.from_arrays(one, one[:2]))
    refused("one of each", lambda: Sessions.from_arrays(one, one, length=[1, 2]))
    refused("between 0 and 2", lambda: Sessions.from_arrays(one, one, length=[1, 2, 3]))
    refused("generator", lambda: fit(SESSIONS for _ in range(1)))
    refused("no sessions", lambda: fit(Sessions.from_arrays(np.zeros((0, 4)), np.zeros((0, 4))), training=SHORT))
    refused("at least 1", lambda: fit(SESSIONS, training=Training(epochs=0)))
    refused("needs `features=`", lambda: PBM(DOCUMENTS, RANKS, tower=Linear()))
    refused("one row", lambda: PBM(DOCUMENTS, RANKS, features=np.zeros((3, 2))))
    refused("`prior=` is", lambda: PBM(DOCUMENTS, RANKS, prior=(-1.0, 1.0)))
    refused("no click model 'abc'", lambda: model_of("abc"))
    fit(SESSIONS, training=SHORT, checkpoint=tmp_path / "run.npz")
    other = Training(epochs=9, batch=64)
    refused("belongs to", lambda: fit(SESSIONS, training=other, checkpoint=tmp_path / "run.npz"))


def test_without_jax_the_install_command_is_named() -> None:
    code = (
        "import sys; sys.modules['jax'] = None\n"
        "from elute.errors import EluteError\n"
        "from elute.clicks import model_of\n"
        "try:\n    model_of('ncm')\nexcept EluteError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'pip install "elute[neural]"' in done.stdout


def test_nothing_but_numpy_jax_and_optax_is_imported() -> None:
    code = (
        "import sys\nfrom elute.clicks import MODELS, model_of\n[model_of(name) for name in MODELS]\n"
        "print([m for m in ('duckdb', 'pyarrow', 'numba', 'pandas') if m in sys.modules])\n"
        "print(sorted(m for m in sys.modules if m.startswith('elute.') and not m.startswith('elute.clicks')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported = [
        "elute._util",
        *(f"elute._util.{name}" for name in ("atomic", "leaving", "locks", "models", "npz", "offsets", "scratch")),
        "elute.door",
        "elute.door.arrays",
        "elute.door.fields",
        "elute.errors",
        "elute.progress",
    ]
    assert done.stdout.splitlines() == ["[]", str(imported)]
