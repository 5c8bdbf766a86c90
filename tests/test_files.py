"""Files of models: what is not what its class describes is refused, and nothing computes with it."""

import contextlib
import io
import json
import math
import os
import struct
import subprocess
import sys
import tracemalloc
import warnings
import zipfile
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from skeleton import Prototypes

sys.path.insert(0, str(Path(__file__).parents[1]))

import unmix
from attack.harness import spoken
from attack.mutations import nodes, text, wrong_values
from attack.wrong_arrays import HEADS, entries_of, npy, variants, zipped
from unmix.engine import tree
from unmix.engine.described import fields
from unmix.engine.stage import Stage
from unmix.engine.trace import Step
from unmix.io import pack
from unmix.io.values import ROOM
from unmix.testing.ends import At, Killed, kill

MODELS = [getattr(unmix, name) for name in unmix._MODELS]
REMEDY = "take another copy, or save it again"


@pytest.fixture(scope="module", params=MODELS, ids=lambda cls: cls.__name__)
def saved(request, tmp_path_factory):
    """A fitted model, some of its rows, and its file."""
    model, X, _ = request.param.example(np.random.default_rng(0))
    path = tmp_path_factory.mktemp("files") / "model.unmix"
    model.fit(X).save(path)
    return X[:10], path.read_bytes(), path.with_name("wrong.unmix")


def outcome(data, X, path):
    """Refused by the one error, or used and finite; anything else is raised."""
    path.write_bytes(data)
    try:
        model = unmix.load(path)
    except pack.PackError as e:
        assert str(path) in str(e)
        return "refused"
    assert np.isfinite(np.asarray(model.transform(X))).all()
    return "used"


def place_of(content, i):
    """Where the text uses array i; nowhere, if it is a table of steps, which may be more or fewer."""
    for way in nodes(content):
        value = content
        for key in way:
            value = value[key]
        if value == {"!": "array", "of": i}:
            return [key for key in way if key != "of"]
    return None


def test_every_array_is_checked_before_a_model_is_handed_out(saved):
    X, data, path = saved
    entries = entries_of(data)
    content, used = json.loads(entries["content.json"]), []
    for i in range(len(entries) - 1):
        name = f"{i}.npy"
        a = np.load(io.BytesIO(entries[name]))
        for what, wrong in variants(a).items():
            if outcome(zipped(entries | {name: npy(wrong)}), X, path) == "used":
                used.append((place_of(content, i), what, a.shape, wrong.shape))
    used = [u for u in used if u[0] is not None]
    # another number in the place of a number may pass; another shape or type may not
    used = [u for u in used if not (u[0] == ["state", "_parts_", 0] and u[2] == (11, 90))]  # RobustPCA's spare axes
    assert not [u for u in used if u[2] != u[3]], used
    assert not [u for u in used if u[1] in ("another type", "half precision", "texts", "small numbers")], used
    assert not [u for u in used if u[1].startswith("one is") and u[0][1] == "_parts_"], used


def test_lost_and_exchanged_arrays(saved):
    X, data, path = saved
    entries = entries_of(data)
    arrays = list(entries)[1:]
    for one in arrays:
        assert outcome(zipped({n: d for n, d in entries.items() if n != one}), X, path) == "refused"
    for one, other in [*pairwise(arrays), *pairwise(arrays[::3]), *pairwise(arrays[::5])]:
        outcome(zipped(entries | {one: entries[other], other: entries[one]}), X, path)


def test_every_attribute_that_is_not_optional_is_there(saved):
    X, data, path = saved
    entries = entries_of(data)
    content = json.loads(entries["content.json"])
    cls, lost = getattr(unmix, content["of"]["class"].partition(":")[2]), set()
    for name in content["of"]["state"]["of"]:
        less = json.loads(entries["content.json"])
        del less["of"]["state"]["of"][name]
        if outcome(zipped(entries | {"content.json": json.dumps(less).encode()}), X, path) == "used":
            lost.add(name)
    optional = {
        name for name, kind in fields(cls).items() for said in get_args(kind)[1:] if getattr(said, "maybe", False)
    }
    assert lost & set(fields(cls)) <= optional | {"_online_"}
    assert not lost & {"_parts_", "_shape", "_dtype_", "n_features_in_", "trace_", "result_", "n_iter_", "stages_"}


def test_other_numbers_in_the_text(saved):
    X, data, path = saved
    entries = entries_of(data)
    for forged in wrong_values(entries):
        use(zipped(forged), X, path)
    for seed in range(40):
        use(text(data, np.random.default_rng(seed)), X, path)


def use(data, X, path):
    """With other parameters than those of the fit a loaded model may refuse rows, in a sentence."""
    try:
        outcome(data, X, path)
    except ValueError as e:
        assert spoken(e), e


def test_a_file_from_before_a_field_had_been_added_is_read(saved):
    X, data, path = saved
    entries = entries_of(data)
    content = json.loads(entries["content.json"])
    shape = content["of"]["state"]["of"]["_shape"]
    assert shape["as"].endswith("Shape")
    shape["of"].pop()  # the last field has a default
    assert outcome(zipped(entries | {"content.json": json.dumps(content).encode()}), X, path) == "used"


def test_parameters_are_those_that_the_class_takes(tmp_path):
    model = unmix.KMeans(3, random_state=0).fit(np.random.default_rng(0).normal(size=(50, 3)))
    model.save(tmp_path / "m")
    entries = entries_of((tmp_path / "m").read_bytes())
    for name, value in {"n_clusters": 0, "tol": -1.0, "metric": "nearest", "max_iter": 2**70, "surprise": 1}.items():
        content = json.loads(entries["content.json"])
        content["of"]["params"]["of"][name] = value
        (tmp_path / "m").write_bytes(zipped(entries | {"content.json": json.dumps(content).encode()}))
        with pytest.raises(pack.PackError, match=REMEDY):
            unmix.load(tmp_path / "m")


def test_what_users_and_scikit_learn_set_is_no_hindrance(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = unmix.PCA(2).fit(X).set_output(transform="pandas")
    model.remark = "mine"
    model.save(tmp_path / "m")
    again = unmix.load(tmp_path / "m")
    np.testing.assert_array_equal(again.transform(X), model.transform(X).to_numpy())
    assert not hasattr(again, "remark")


def test_a_model_of_heavy_rows_is_read_again(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = unmix.KMeans(3, random_state=0).fit(X, sample_weight=np.full(60, 1e18))
    for _ in range(2):
        model.save(tmp_path / "m")
        np.testing.assert_array_equal(unmix.load(tmp_path / "m").predict(X), model.predict(X))
        model.partial_fit(X)


def test_many_named_columns(tmp_path):
    names = np.array([f"probe {i:06}" for i in range(100_000)] + ["", "é", "\udcff", "a\0", "日本"], object)
    pack.write(tmp_path / "m", {"names": names, "data": np.zeros(2 * len(names))})
    assert pack.read(tmp_path / "m")["names"].tolist() == names.tolist()
    with pytest.raises(pack.PackError, match=r"more than the 16 MiB .* fit rows without names"):
        pack.write(tmp_path / "m", {"names": np.tile(names, 4)})
    import pandas as pd

    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 3)), columns=["a", "b", "c"])
    model = unmix.PCA(2).fit(frame)
    model.save(tmp_path / "m")
    again = unmix.load(tmp_path / "m")
    assert again._shape == model._shape
    assert again.feature_names_in_.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("forged", [[3, 3], ["a", 3], [[1, 2], [3]], [{"!": "array", "of": 0}]])
def test_forged_strings(forged, tmp_path):
    path = tmp_path / "m"
    pack.write(path, {"names": np.array(["one", "two"], object)})
    entries = entries_of(path.read_bytes())
    content = json.loads(entries["content.json"])
    content["of"]["names"]["of"] = forged
    path.write_bytes(zipped(entries | {"content.json": json.dumps(content).encode()}))
    with pytest.raises(pack.PackError):
        pack.read(path)


def test_a_topic_model_from_before_steps_were_counted_is_read(tmp_path):
    model, X, _ = unmix.LatentDirichletAllocation.example(np.random.default_rng(0))
    model.fit(X).save(tmp_path / "m")
    rewritten(tmp_path / "m", lambda params, state: state.pop("n_batch_iter_"))
    np.testing.assert_array_equal(unmix.load(tmp_path / "m").transform(X), model.transform(X))


def rewritten(path, change):
    """Change the text of a file."""
    entries = entries_of(path.read_bytes())
    content = json.loads(entries["content.json"])
    change(content["of"]["params"]["of"], content["of"]["state"]["of"])
    path.write_bytes(zipped(entries | {"content.json": json.dumps(content).encode()}))


@pytest.mark.parametrize(
    "online", [None, 3, ["stats", -1], ["steps", -1], ["steps", 2**70], ["seen", -1.0], ["seen", 1e308]]
)
def test_a_forged_online_state_is_refused(online, tmp_path):
    X = np.random.default_rng(0).normal(size=(90, 3))
    unmix.KMeans(3, random_state=0).fit(X).save(tmp_path / "m")

    def forge(params, state):
        if isinstance(online, list):
            state["_online_"]["of"][["stats", "steps", "seen"].index(online[0])] = online[1]
        else:
            state["_online_"] = online

    rewritten(tmp_path / "m", forge)
    with pytest.raises(pack.PackError, match=f"_online_.*{REMEDY}"):
        unmix.load(tmp_path / "m")


def test_an_online_state_of_a_model_that_does_not_learn_online_is_refused(tmp_path):
    X = np.random.default_rng(0).normal(size=(90, 3))
    unmix.KMedoids(3, random_state=0).fit(X).save(tmp_path / "m")
    forged = {"!": "tuple", "of": [1, 1, 1.0], "as": None}
    rewritten(tmp_path / "m", lambda params, state: state.update(_online_=forged))
    with pytest.raises(pack.PackError, match=REMEDY):
        unmix.load(tmp_path / "m")


def test_every_array_of_an_online_state_is_refused_or_learnt_from(saved):
    """Statistics of no rows are an error in a sentence, never one of arithmetic."""
    X, data, path = saved
    entries = entries_of(data)
    content = json.loads(entries["content.json"])
    for i in range(len(entries) - 1):
        if "_online_" not in (place_of(content, i) or ()):
            continue
        for what, wrong in variants(np.load(io.BytesIO(entries[f"{i}.npy"]))).items():
            path.write_bytes(zipped(entries | {f"{i}.npy": npy(wrong)}))
            try:
                model = unmix.load(path)
            except pack.PackError:
                continue
            try:
                model.partial_fit(X)
            except ValueError as e:
                assert spoken(e), what
                assert not isinstance(e, np.linalg.LinAlgError), what


def test_more_documents_than_there_can_be_are_refused(tmp_path):
    """Topics were divided by as many."""
    model, X, _ = unmix.LatentDirichletAllocation.example(np.random.default_rng(0))
    model.fit(X).save(tmp_path / "m")
    rewritten(tmp_path / "m", lambda params, state: state["_online_"]["of"][0]["of"].__setitem__(2, 1e308))
    with pytest.raises(pack.PackError, match="documents"):
        unmix.load(tmp_path / "m")


def test_what_a_class_does_not_declare_is_refused(tmp_path):
    X = np.random.default_rng(0).normal(size=(90, 3))
    model = unmix.KMeans(3, random_state=0).fit(X)
    for name, value in {"extra_": 1.0, "fit": 1, "_skl_x": 1, "_parts": [], "n_clusters": 3}.items():
        model.save(tmp_path / "m")
        rewritten(tmp_path / "m", lambda params, state, name=name, value=value: state.update({name: value}))
        with pytest.raises(pack.PackError, match=f"{name}.*no attributes"):
            unmix.load(tmp_path / "m")
    model.extra_ = np.zeros(3)
    with pytest.raises(pack.PackError, match=r"does not declare \['extra_'\]"):
        model.save(tmp_path / "m")


def test_an_error_of_ours_is_not_called_damage(tmp_path, monkeypatch):
    X = np.random.default_rng(0).normal(size=(90, 3))
    unmix.KMeans(3, random_state=0).fit(X).save(tmp_path / "m")
    state = tmp_path / "state"
    with unmix.config(checkpoint=state, checkpoint_seconds=0.0), contextlib.suppress(Killed):
        unmix.KMeans(3, random_state=0).set_callbacks(At(2, kill)).fit(X)

    def buggy(self, U, data):
        return U.no_such_field

    monkeypatch.setattr(unmix.KMeans, "described", buggy)
    with pytest.raises(AttributeError, match="no_such_field"):
        unmix.load(tmp_path / "m")
    with unmix.config(checkpoint=state), pytest.raises(AttributeError, match="no_such_field"):
        unmix.KMeans(3, random_state=0).fit(X)


@pytest.mark.parametrize(
    ("cls", "name", "value"),
    [
        (unmix.Mixture, "family", [1, 2]),
        (unmix.Mixture, "family", [[[], [0]]]),
        (unmix.Mixture, "family", [["gaussian", [0, 1, 2, 99]]]),
        (unmix.KernelKMeans, "kernel_params", {"!": "dict", "of": {"VI": 1}}),
        (unmix.KernelKMeans, "kernel_params", {"!": "dict", "of": {"gamma": "x"}}),
        (unmix.KMedoids, "metric_params", {"!": "dict", "of": {"VI": 1}}),
        (unmix.LatentDirichletAllocation, "doc_topic_prior", [1, 2]),
        (unmix.LatentDirichletAllocation, "doc_topic_prior", {"!": "dict", "of": {}}),
        (unmix.LatentDirichletAllocation, "components_init", [["x"]]),
    ],
)
def test_parameters_that_the_data_contradict_are_refused(cls, name, value, tmp_path):
    model, X, _ = cls.example(np.random.default_rng(0))
    model.fit(X).save(tmp_path / "m")
    rewritten(tmp_path / "m", lambda params, state: params.update({name: value}))
    with pytest.raises(pack.PackError, match=REMEDY):
        unmix.load(tmp_path / "m")


@pytest.mark.parametrize(
    "name", ["unmix.model.estimator:Model", "unmix.model.files:Files", "unmix.mixture._base:BaseMixture"]
)
def test_the_base_of_models_is_no_model(name, tmp_path):
    unmix.KMeans(3, random_state=0).fit(np.random.default_rng(0).normal(size=(90, 3))).save(tmp_path / "m")
    entries = entries_of((tmp_path / "m").read_bytes())
    content = json.loads(entries["content.json"])
    content["of"] |= {"class": name, "params": {"!": "dict", "of": {}}}
    (tmp_path / "m").write_bytes(zipped(entries | {"content.json": json.dumps(content).encode()}))
    with pytest.raises(pack.PackError, match="is not a model"):
        unmix.load(tmp_path / "m")


def test_words_without_a_topic_are_refused(tmp_path):
    """β in another order has zeros, which stand beside the last topic, in the place of topics."""
    model, X, _ = unmix.LatentDirichletAllocation.example(np.random.default_rng(0))
    U = model.fit(X).parts
    U.beta[:] = np.roll(U.beta, model.n_components, axis=1)
    with pytest.raises(pack.PackError, match="contradict each other"):
        model.save(tmp_path / "topics")  # which reads what it wrote, as `load` does


def test_a_scale_of_zero_is_refused(tmp_path):
    model, X, _ = unmix.SoftKMeans.example(np.random.default_rng(0))
    model.fit(X).save(tmp_path / "m")
    entries = entries_of((tmp_path / "m").read_bytes())
    content = json.loads(entries["content.json"])
    parts = content["of"]["state"]["of"]["_parts_"]["of"]
    assert parts[3] == model.beta_
    parts[3] = 0
    (tmp_path / "m").write_bytes(zipped(entries | {"content.json": json.dumps(content).encode()}))
    with pytest.raises(pack.PackError, match="beta"):
        unmix.load(tmp_path / "m")


# -- the file itself --

GOOD = {"a": np.arange(12.0).reshape(3, 4), "b": [1, "x", None, (2.5, True)]}


@pytest.fixture
def good(tmp_path):
    pack.write(tmp_path / "good", GOOD)
    return (tmp_path / "good").read_bytes()


def refused(path, data):
    path.write_bytes(data)
    with pytest.raises(pack.PackError, match=REMEDY) as e:
        pack.read(path)
    assert repr(str(path)) in str(e.value)


def test_a_file_that_is_cut_off_anywhere_is_refused(good, tmp_path):
    for i in range(len(good)):
        refused(tmp_path / "cut", good[:i])
    refused(tmp_path / "cut", good + b"x")
    refused(tmp_path / "cut", good[1:])


def test_a_bit_that_turned_in_an_entry_is_found(good, tmp_path):
    end = good.rindex(b"PK\1\2", 0, good.rindex(b"PK\1\2"))
    for i in range(0, end * 8, 37):
        wrong = bytearray(good)
        wrong[i // 8] ^= 1 << i % 8
        (tmp_path / "bit").write_bytes(wrong)
        try:
            value = pack.read(tmp_path / "bit")
        except pack.PackError:
            continue
        assert np.array_equal(value["a"], GOOD["a"])  # a bit of no meaning, as the time of an entry
        assert value["b"] == GOOD["b"]


def test_compressed_entries_are_refused_before_they_are_unpacked(good, tmp_path):
    entries = entries_of(good)
    bomb = zipped(entries | {"0.npy": entries["0.npy"][:128] + bytes(1 << 28)}, deflate="0.npy")
    assert len(bomb) < 1 << 20
    (tmp_path / "bomb").write_bytes(bomb)
    tracemalloc.start()
    with pytest.raises(pack.PackError, match="compressed"):
        pack.read(tmp_path / "bomb")
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()
    refused(tmp_path / "x", zipped(entries, deflate="content.json"))


@pytest.mark.parametrize("size", [2**20, 2**40, 2**64 - 1])
def test_an_entry_that_says_it_is_longer_than_the_file(size, good, tmp_path):
    at = good.index(b"0.npy") + 5 + 4  # in the extra field, after its tag and its width
    refused(tmp_path / "long", good[:at] + struct.pack("<QQ", size, size) + good[at + 16 :])


@pytest.mark.parametrize("change", HEADS, ids=str)
def test_headers_of_arrays_are_read_strictly(change, good, tmp_path):
    entries = entries_of(good)
    raw = entries["0.npy"]
    head = raw[10:128].decode().replace(*change, 1)
    if head == raw[10:128].decode():
        pytest.skip("not in this header")
    wrong = zipped(entries | {"0.npy": raw[:8] + len(head).to_bytes(2, "little") + head.encode() + raw[128:]})
    (tmp_path / "head").write_bytes(wrong)
    try:
        value = pack.read(tmp_path / "head")["a"]
    except pack.PackError as e:
        assert REMEDY in str(e)
    else:
        assert value.nbytes == GOOD["a"].nbytes  # other numbers, in as many bytes


@pytest.mark.parametrize(
    "written",
    ["[" * 10**6, "[" * 500 + "]" * 500, '{"a":' * 10**5, "", "{", "nul", '{"!": 1}', "[" + "[]," * 2**21 + "0]"],
)
def test_a_text_that_is_too_deep_or_no_text(written, good, tmp_path):
    refused(tmp_path / "deep", zipped(entries_of(good) | {"content.json": written.encode()}))


TEXTS = {
    "lists": "[" + "[0]," * 500_000 + "0]",
    "dicts": "[" + '{"a":1},' * 300_000 + "0]",
    "numbers": "[" + "1234.5," * 600_000 + "0]",
    "strings": "[" + '"ab",' * 400_000 + "0]",
    "names": '{"!": "dict", "of": {' + ",".join(f'"{i}": 0' for i in range(300_000)) + "}}",
    "wide": '["' + "a" * 4_000_000 + '\\ud83d\\ude00"]',
    "a matrix": '{"!": "csr", "of": [1000000000, 1000000000], "shape": [1000000000, 1000000000]}',
    "just within": "[" + "[0]," * 160_000 + "0]",
}


@pytest.mark.parametrize("kind", TEXTS)
def test_a_small_text_takes_little_memory(kind, good, tmp_path):
    (tmp_path / "text").write_bytes(zipped(entries_of(good) | {"content.json": TEXTS[kind].encode()}))
    tracemalloc.start()
    with contextlib.suppress(pack.PackError):
        pack.read(tmp_path / "text")
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < ROOM + 1.2 * os.path.getsize(tmp_path / "text")


def test_many_steps_are_kept_as_a_table(tmp_path):
    steps = [Step(i, 1.0 / i, i * 1e-3, math.nan if i == 7 else 1e6, i % 3 > 0) for i in range(1, 40_000)]
    pack.write(tmp_path / "steps", [steps, steps[:3]])
    assert os.path.getsize(tmp_path / "steps") < 41 * len(steps)
    tracemalloc.start()
    long, short = pack.read(tmp_path / "steps")
    assert tracemalloc.get_traced_memory()[1] < ROOM
    tracemalloc.stop()
    assert repr(long) == repr(steps)
    assert short == steps[:3]
    with pytest.raises(pack.PackError, match="need more than the 16 MiB"):
        pack.write(tmp_path / "more", steps * 10)


def test_nothing_follows_the_directory(good, tmp_path):
    refused(tmp_path / "twice", good + good)


def test_entries_twice_in_another_order_or_elsewhere(good, tmp_path):
    entries = entries_of(good)
    for names in (
        ["0.npy", "content.json"],
        ["content.json", "1.npy"],
        ["content.json", "../0.npy"],
        ["content.json", "0.npy/"],
    ):
        refused(tmp_path / "names", zipped(dict(zip(names, entries.values(), strict=True))))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there are two
        for name, data in [*entries.items(), ("0.npy", entries["0.npy"])]:
            z.writestr(name, data)
    refused(tmp_path / "names", out.getvalue())


def test_an_array_has_one_place(good, tmp_path):
    content = json.loads(entries_of(good)["content.json"])
    content["of"]["b"] = content["of"]["a"]
    refused(tmp_path / "twice", zipped(entries_of(good) | {"content.json": json.dumps(content).encode()}))


@pytest.mark.parametrize(
    "name",
    [
        "os:system",
        "antigravity:Evil",
        "unmix.nowhere:Parts",
        "unmix.engine.layout:Nothing",
        "unmix.__main__:X",
        "unmix/../x:Y",
        "unmixed:Parts",
        ":",
        "",
        None,
        3,
    ],
)
def test_a_file_imports_nothing_but_the_library(name, good, tmp_path):
    content = {"!": "tuple", "of": [], "as": name}
    if name is None:
        content["as"] = ["unmix.engine.layout:Shape"]
    refused(tmp_path / "names", zipped(entries_of(good) | {"content.json": json.dumps(content).encode()}))
    assert "antigravity" not in sys.modules


def test_loading_takes_little_more_than_the_file(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60_000, 60)).astype(np.float32)
    model = unmix.KMeans(4, random_state=0, max_iter=2, init=X[:4]).fit(X[:1000])
    model.labels_ = np.zeros(1000, np.int32)
    model._shape = model._shape._replace(n=8_000_000)
    model.labels_ = np.zeros(8_000_000, np.int32)
    model.save(tmp_path / "m")
    size = os.path.getsize(tmp_path / "m")
    assert size > 32_000_000
    tracemalloc.start()
    unmix.load(tmp_path / "m")
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 1.2 * size, f"{most / size:.2f} times its size"


# -- checkpoints --


@pytest.mark.parametrize("cls", MODELS, ids=lambda cls: cls.__name__)
def test_a_checkpoint_with_another_array_is_refused_or_goes_on(cls, tmp_path):
    model, X, _ = cls.example(np.random.default_rng(0))
    path = tmp_path / "state"
    with unmix.config(checkpoint=path, checkpoint_seconds=0.0, block_rows=100), contextlib.suppress(Killed):
        type(model)(**model.get_params()).set_callbacks(At(2, kill)).fit(X)
    if not path.exists():
        pytest.skip("the fit has one step")
    entries, refusals = entries_of(path.read_bytes()), 0
    for name in list(entries)[1:13]:
        a = np.load(io.BytesIO(entries[name]))
        for what, wrong in variants(a).items():
            if wrong.shape == a.shape and what not in ("negative", "far out", "texts", "another type"):
                continue
            path.write_bytes(zipped(entries | {name: npy(wrong)}))
            try:
                with unmix.config(checkpoint=path, checkpoint_seconds=1e9, block_rows=100):
                    done = type(model)(**model.get_params()).fit(X)
            except ValueError as e:
                assert f"checkpoint={str(path)!r}" in str(e)
                assert "name another" in str(e)
                refusals += 1
                continue
            assert tree.finite(done._parts_), f"{name}: {what}"
    assert refusals


def test_a_scale_whose_square_is_zero_is_refused(tmp_path):
    model, X, _ = unmix.NMF.example(np.random.default_rng(0))
    model.fit(X).save(tmp_path / "m")
    rewritten(tmp_path / "m", lambda params, state: state["_parts_"]["of"].__setitem__(1, 5e-324))
    with pytest.raises(pack.PackError, match="contradict"):
        unmix.load(tmp_path / "m")


def test_a_crashing_file_of_old_is_an_error(tmp_path):
    """`natural` with fewer columns than the kernel reads once ended the process."""
    path = tmp_path / "m"
    X = np.random.default_rng(0).normal(size=(200, 6))
    unmix.GaussianMixture(3, random_state=0).fit(X).save(path)
    entries = entries_of(path.read_bytes())
    wide = [n for n in list(entries)[1:] if np.load(io.BytesIO(entries[n])).shape == (3, 28)]
    assert wide
    for name in wide:
        path.write_bytes(zipped(entries | {name: npy(np.zeros((3, 2)))}))
        script = f"import unmix; unmix.load({str(path)!r}).transform([[0.0] * 6] * 50)"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        assert "PackError" in done.stderr
        assert done.returncode == 1


def arrays_of(kind):
    """Every array that a kind speaks of, with what is said of it."""
    for name, inner in fields(kind).items():
        text = str(inner)
        if "ndarray" in text:
            yield name, "Array(" in text
        for part in [inner, *get_args(inner)]:
            if isinstance(part, type) and issubclass(part, tuple) and part is not tuple:
                yield from arrays_of(part)


@pytest.mark.parametrize("cls", MODELS, ids=lambda cls: cls.__name__)
def test_every_array_of_a_model_is_described(cls):
    model, X, _ = cls.example(np.random.default_rng(0))
    model.fit(X)
    said = model.at(model._shape).described(model._parts_, None)
    assert said.parts is type(model._parts_)
    assert not [name for name, told in arrays_of(said.parts) if not told]
    if said.stats is not Any:
        assert not [name for name, told in arrays_of(said.stats) if not told]
    told = fields(cls)
    assert not [k for k in vars(model) if k.endswith("_") and k not in told]
    for stage in model.at(model._shape).stages(model._shape):
        assert type(stage).described is not Stage.described, f"{stage.name} describes nothing"


class Derived(Prototypes):
    """A model of somebody's own, whose parts are named in the module of the class that it derives from."""


def test_a_class_that_derives_from_another_modules_is_loaded(tmp_path):
    model, X, _ = Derived.example(np.random.default_rng(0))
    model.fit(X).save(tmp_path / "own")
    assert np.array_equal(Derived.load(tmp_path / "own").transform(X), model.transform(X))
    with pytest.raises(pack.PackError, match="`load` of its own class"):
        unmix.load(tmp_path / "own")


@pytest.mark.parametrize(
    "name", ["unmix.io.pack:os.stat_result", "unmix.io.pack:os.terminal_size", "unmix.io.pack:Path"]
)
def test_classes_that_a_module_only_imports_are_refused(name, tmp_path):
    unmix.PCA(2).fit(np.random.default_rng(0).normal(size=(60, 5))).save(tmp_path / "a")
    with zipfile.ZipFile(tmp_path / "a") as z, zipfile.ZipFile(tmp_path / "b", "w") as out:
        for entry in z.namelist():
            out.writestr(entry, z.read(entry).replace(b"unmix.engine.layout:Shape", name.encode()))
    with pytest.raises(pack.PackError):
        unmix.load(tmp_path / "b")


@pytest.mark.parametrize(
    ("field", "value"), [("unit", 0.0), ("unit", -1.0), ("unit", 3.0), ("unit", 1e300), ("counted", -5)]
)
def test_shapes_that_no_data_have_are_refused(field, value, tmp_path):
    model = unmix.RobustPCA().fit(np.random.default_rng(0).normal(size=(60, 5)))
    vars(model)["_shape"] = model._shape._replace(**{field: value})
    with pytest.raises(pack.PackError, match="no data of the shape"):
        model.save(tmp_path / "a")


def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 5)).astype(np.float32)
    unmix.PCA(2).fit(X).save(tmp_path / "a")
    before = (tmp_path / "a").read_bytes()
    model = unmix.PCA(2).fit(X, sample_weight=np.full(60, 1e90))  # whose singular values are beyond float32
    with pytest.raises(pack.PackError, match=r"PCA cannot be saved: .*singular_values_.*nothing was written"):
        model.save(tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == before
    assert os.listdir(tmp_path) == ["a"]
