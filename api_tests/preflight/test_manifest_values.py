"""What a manifest says around a launch: release, GPU, variables. The rules are Kubernetes' and compose's own."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from engine.errors import InvalidLaunch
from engine.manifests import FoundLaunch, Silence, launch_of, launches_in
from engine.manifests.gpu_labels import selected_gpu
from engine.manifests.images import release_of
from engine.manifests.variables import Variables

SECRET = [{"name": "V", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]
COMMAND = ["python3", "-m", "sglang.launch_server", "--model-path", "org/m"]


def pod(container: dict[str, Any], **changes: Any) -> dict[str, Any]:
    container = {"name": "engine", "image": "x", "command": COMMAND, **container}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", **changes.pop("metadata", {})},
        "spec": {"containers": [container], **changes},
    }


def only(document: dict[str, Any]) -> FoundLaunch:
    (found,) = launches_in(yaml.safe_dump(document))
    return found


@pytest.mark.parametrize(
    ("image", "release"),
    [
        ("lmsysorg/sglang:v0.5.20-cu126", "0.5.20"),
        ("lmsysorg/sglang:v0.5.23", "0.5.23"),
        ("docker.io/lmsysorg/sglang:v0.5.21.post1-cu130-amd64", "0.5.21.post1"),
        ("registry.local:5000/mirror/sglang:0.5.19", "0.5.19"),
        ("lmsysorg/sglang:v0.5.18@sha256:" + "0" * 64, "0.5.18"),
        ("rocm/sgl-dev:v0.5.17-rocm700-mi30x-20260901", "0.5.17"),
        ("lmsysorg/sglang:latest", None),
        ("lmsysorg/sglang:nightly-dev-20261101-0a1b2c3d", None),
        ("lmsysorg/sglang", None),
        ("lmsysorg/sglang@sha256:" + "0" * 64, None),
        ("registry.local:5000/lmsysorg/sglang", None),
        ("nvcr.io/nvidia/sglang:26.10-py3", None),
        ("nvcr.io/nvidia/ai-dynamo/sglang-runtime:0.7.0", None),
        ("acme/llm:0.5.20", None),
        (None, None),
    ],
)
def test_the_tag_of_the_engine_s_own_images_is_the_release(image: str | None, release: str | None) -> None:
    assert release_of(image) == release


def test_an_annotation_wins_over_the_tag_and_a_named_release_over_both() -> None:
    image = {"image": "lmsysorg/sglang:v0.5.20"}
    tagged = only(pod(image))
    annotated = only(pod(image, metadata={"annotations": {"graphgate.dev/release": "0.5.21"}}))
    silent = only(pod({"image": "lmsysorg/sglang:dev"}))
    assert launch_of(tagged, Silence()).release == "0.5.20"
    assert launch_of(annotated, Silence()).release == "0.5.21"
    assert launch_of(annotated, Silence(), release="0.5.22").release == "0.5.22"
    assert launch_of(silent, Silence(release="0.5.19")).release == "0.5.19"


def test_the_pod_template_s_annotation_wins_over_the_object_s() -> None:
    template = pod({}, metadata={"annotations": {"graphgate.dev/gpu": "B200"}})
    document = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "d",
            "annotations": {"graphgate.dev/gpu": "H100", "graphgate.dev/model": "other/model@v1"},
        },
        "spec": {"template": {"metadata": template["metadata"], "spec": template["spec"]}},
    }
    found = only(document)
    assert found.gpu_product == "B200"
    assert found.model is not None
    assert (found.model.id, found.model.revision) == ("other/model", "v1")


def affinity(*terms: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": expressions} for expressions in terms]
                }
            }
        }
    }


def product(operator: str, *values: str) -> dict[str, Any]:
    return {"key": "nvidia.com/gpu.product", "operator": operator, "values": list(values)}


H200, T4 = "NVIDIA-H200", "Tesla-T4"
ZONE = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]}


@pytest.mark.parametrize(
    ("spec", "gpu"),
    [
        ({"nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}}, "NVIDIA-H100-80GB-HBM3"),
        ({"nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-L4-SHARED"}}, "NVIDIA-L4"),
        ({"nodeSelector": {"cloud.google.com/gke-accelerator": "nvidia-h200-141gb"}}, "H200"),
        ({"nodeSelector": {"gpu.nvidia.com/class": "H100_NVLINK_80GB"}}, "H100"),
        ({"nodeSelector": {"disk": "ssd"}}, None),
        (affinity([product("In", H200)]), H200),
        (affinity([ZONE, product("In", H200)]), H200),
        (affinity([product("In", H200)], [product("In", H200), ZONE]), H200),
        (affinity([product("In", H200, T4)]), None),
        (affinity([product("In", H200)], [product("In", T4)]), None),
        (affinity([product("In", H200)], [ZONE]), None),
        (affinity([product("NotIn", T4)]), None),
        (affinity([{"key": "nvidia.com/gpu.product", "operator": "Exists"}]), None),
        ({"affinity": {"nodeAffinity": 3}}, None),
    ],
)
def test_the_gpu_is_what_every_node_that_may_be_taken_has(spec: dict[str, Any], gpu: str | None) -> None:
    assert selected_gpu(spec) == gpu


@pytest.mark.parametrize(
    ("container", "mark"),
    [
        ({"resources": {"limits": {"amd.com/gpu": 8}}}, "amd.com/gpu"),
        ({"resources": {"requests": {"huawei.com/Ascend910": 8}}}, "huawei.com/Ascend910"),
        ({"image": "lmsysorg/sglang:v0.5.20-rocm700-mi30x"}, "rocm"),
        ({"image": "lmsysorg/sglang:v0.5.20-cann8.3.rc1-910b"}, "cann"),
    ],
)
def test_a_device_of_another_kind_is_not_examined_as_a_gpu(container: dict[str, Any], mark: str) -> None:
    with pytest.raises(InvalidLaunch, match=f"another kind of device \\({mark}\\)"):
        launch_of(only(pod(container)), Silence())
    annotated = pod(container, metadata={"annotations": {"graphgate.dev/gpu": "H200"}})
    assert launch_of(only(annotated), Silence()).gpu == "H200"


def test_variables_see_earlier_ones_and_dollars_are_escaped() -> None:
    """kubernetes.io, "Define Dependent Environment Variables": order counts, ``$$(NAME)`` is kept."""
    env = [
        {"name": "A", "value": "1"},
        {"name": "B", "value": "$(A)2"},
        {"name": "EARLY", "value": "$(LATE)"},
        {"name": "LATE", "value": "3"},
        {"name": "A", "value": "again"},
    ]
    found = only(pod({"args": ["--x", "$(B)", "$(A)", "$$(A)", "$$", "$(EARLY)", "$("], "env": env}))
    assert found.arguments == ("--x", "12", "again", "$(A)", "$", "$(LATE)", "$(")
    assert found.unknown == ()


@pytest.mark.parametrize(
    ("word", "expanded"),
    [
        ("$(TP)/$(TP)", "8/8"),
        ("$$$(TP) $$$$(TP)", "$8 $$(TP)"),
        ("\\\\$(TP)", "\\\\8"),
        ("$TP ${TP} $TP) (TP) $", "$TP ${TP} $TP) (TP) $"),
        ("[$(EMPTY)]", "[]"),
        ("$(REFERENCE)", "$(TP)"),
        ("$(A$(TP))", "$(A$(TP))"),
        ("$(NONE$$X) $(TP", "$(NONE$$X) $(TP"),
    ],
)
def test_a_word_is_expanded_as_the_kubelet_does_it(word: str, expanded: str) -> None:
    """Each kind of case that the kubelet's own table of cases has (third_party/forked/golang/expansion)."""
    given = Variables(values={"TP": "8", "EMPTY": "", "REFERENCE": "$(TP)"})
    assert given.expanded(word) == expanded


@pytest.mark.parametrize(
    ("source", "known"),
    [
        ({"fieldRef": {"fieldPath": "metadata.labels['tp']"}}, "4"),
        ({"fieldRef": {"fieldPath": "metadata.annotations['graphgate.dev/gpu']"}}, "B200"),
        ({"fieldRef": {"fieldPath": "metadata.namespace"}}, "llm"),
        ({"fieldRef": {"fieldPath": "status.podIP"}}, None),
        ({"fieldRef": {"fieldPath": "metadata.labels['other']"}}, None),
        ({"secretKeyRef": {"name": "s", "key": "k"}}, None),
        ({"configMapKeyRef": {"name": "s", "key": "k"}}, None),
    ],
)
def test_values_from_elsewhere_are_known_where_the_manifest_holds_them(source: Any, known: str | None) -> None:
    metadata = {"namespace": "llm", "labels": {"tp": "4"}, "annotations": {"graphgate.dev/gpu": "B200"}}
    env = [{"name": "SGLANG_V", "value": "old"}, {"name": "SGLANG_V", "valueFrom": source}]
    found = only(pod({"args": ["--x", "$(SGLANG_V)"], "env": env}, metadata=metadata))
    assert found.arguments == ("--x", known or "$(SGLANG_V)")
    assert found.unknown == (() if known else ("$(SGLANG_V)",))
    assert found.unread == (() if known else ("SGLANG_V",))


@pytest.mark.parametrize(
    ("env", "more", "unknown"),
    [
        ([{"name": "S", "valueFrom": {"secretKeyRef": {}}}, {"name": "V", "value": "$(S)"}], [], ("$(S)",)),
        ([{"name": "V", "value": "$(S)"}, {"name": "S", "value": "2"}], [], ()),
        ([{"name": "V", "value": "$(S)"}, {"name": "S", "value": "2"}], [{"secretRef": {"name": "s"}}], ("$(S)",)),
        ([{"name": "V", "value": "$(S)"}], [], ("$(S)",)),
    ],
)
def test_a_value_that_is_made_of_an_unknown_one_is_unknown(env: Any, more: Any, unknown: tuple[str, ...]) -> None:
    found = only(pod({"args": ["--tp", "$(V)"], "env": env, "envFrom": more}))
    assert (found.arguments, found.unknown) == (("--tp", "$(S)"), unknown)


def test_an_engine_s_variable_that_is_made_of_an_unknown_one_is_not_examined() -> None:
    env = [*SECRET, {"name": "SGLANG_A", "value": "$(V)"}, {"name": "SGLANG_B", "value": "1"}]
    found = only(pod({"env": env}))
    assert (dict(found.environment), found.unread) == ({"SGLANG_B": "1"}, ("SGLANG_A",))


def test_an_env_from_is_said_to_be_unread() -> None:
    found = only(pod({"envFrom": [{"configMapRef": {"name": "c"}}], "env": [{"name": "KEY", "valueFrom": {}}]}))
    assert found.unread == ("envFrom",)


@pytest.mark.parametrize(
    ("words", "examined"),
    [
        (["--api-key", "$(V)", "--tp", "2"], ("--api-key", "$(V)", "--tp", "2")),
        (["--port=$(V)", "--tp", "2"], ("--tp", "2")),
        (["--host", "$(V)", "--tp", "2"], ("--host", "$(V)", "--tp", "2")),
        (["--log-requests-level", "$(V)", "--tp", "2"], ("--tp", "2")),
    ],
)
def test_an_unknown_value_that_nothing_reads_is_left_alone(words: list[str], examined: tuple[str, ...]) -> None:
    assert launch_of(only(pod({"args": words, "env": SECRET})), Silence()).arguments == examined


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--tp", "$(V)"], r"value of --tp is \$\(V\)"),
        (["--cuda-graph-config=$(V)"], r"value of --cuda-graph-config is"),
        (["--attention-backend", "$(V)"], r"value of --attention-backend is"),
        (["--enable-metrics", "$(V)"], r"A part of the command is \$\(V\)"),
        (["--no-such-option", "$(V)"], r"part of the command is"),
    ],
)
def test_an_unknown_value_that_matters_is_not_guessed(words: list[str], said: str) -> None:
    with pytest.raises(InvalidLaunch, match=said):
        launch_of(only(pod({"args": words, "env": SECRET})), Silence())


def test_a_shell_s_unknown_values_are_told_apart_too() -> None:
    script = "exec python3 -m sglang.launch_server --model-path org/m --api-key $KEY --tp $TP --host ${HOST:-::}"
    found = only(pod({"command": ["bash", "-c", script], "env": [{"name": "TP", "value": "2"}]}))
    assert found.unknown == ("$KEY",)
    assert launch_of(found, Silence()).arguments == ("--api-key", "$KEY", "--tp", "2", "--host", "::")


def test_a_native_sidecar_and_an_init_container_are_found() -> None:
    document = pod({}, initContainers=[{"name": "warm", "command": [*COMMAND, "--tp", "2"], "restartPolicy": "Always"}])
    found = launches_in(yaml.safe_dump(document))
    assert [(one.container, one.path) for one in found] == [
        ("warm", "spec.initContainers[0]"),
        ("engine", "spec.containers[0]"),
    ]


def test_a_group_s_controller_gives_each_pod_its_place() -> None:
    """github.com/kubernetes-sigs/lws, "Labels, Annotations and Environment Variables"."""
    index = {"fieldRef": {"fieldPath": "metadata.labels['leaderworkerset.sigs.k8s.io/worker-index']"}}
    words = ["--dist-init-addr", "$(LWS_LEADER_ADDRESS):20000", "--nnodes", "$(LWS_GROUP_SIZE)", "--node-rank", "$(I)"]
    container = {"name": "e", "command": COMMAND, "args": words, "env": [{"name": "I", "valueFrom": index}]}
    template = {"spec": {"containers": [container]}}
    document = {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "big", "namespace": "llm"},
        "spec": {"leaderWorkerTemplate": {"size": 2, "leaderTemplate": template, "workerTemplate": template}},
    }
    leader, worker = launches_in(yaml.safe_dump(document))
    assert leader.arguments == ("--dist-init-addr", "big-0.big.llm:20000", "--nnodes", "2", "--node-rank", "0")
    assert worker.arguments == (*leader.arguments[:-1], "1")
    del document["spec"]["leaderWorkerTemplate"]["leaderTemplate"]  # type: ignore[index]  # a literal of three levels
    assert only(document).arguments == leader.arguments


def test_a_compose_service_has_a_release_too() -> None:
    command = "sglang serve org/m --api-key $KEY --tp ${TP:-4}"
    services = {"engine": {"image": "lmsysorg/sglang:${TAG:-v0.5.20}", "command": command}}
    (found,) = launches_in(yaml.safe_dump({"services": services}))
    launch = launch_of(found, Silence())
    assert (launch.release, launch.arguments) == ("0.5.20", ("--api-key", "$KEY", "--tp", "4"))
