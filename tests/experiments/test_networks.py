"""The networks and their training loop; the scale of the paper with two batches."""

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the networks of figures 4 and 5 need PyTorch")

from experiments.networks import cnn, images, resnet, training  # noqa: E402
from experiments.networks.problem import Network, Setting  # noqa: E402

CNN = {"learning_rate": 1e-2, "batch_size": 4, "units_1": 16, "units_2": 16, "units_3": 16}
RESNET = {"learning_rate": 0.1, "l2": 1e-4, "decay_factor": 0.1, "momentum": 0.9}


def stand_in(n, seed=0):
    """Images that are bright or dark, labelled by that."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 2
    pixels = rng.integers(40, size=(n, 32, 32, 3)) + 200 * labels[:, None, None, None]
    return pixels.astype(np.uint8), labels.astype(np.int64)


def network(architecture, scale, **changes):
    scale = replace(scale, rows=8, valid=6, test=4, smallest=4, **changes)
    split = images.Split(stand_in(8, 0), stand_in(6, 1), stand_in(4, 2))
    return Network(architecture, scale, split)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("architecture", "scale", "config"),
    [
        (cnn.Cnn(), cnn.PAPER["cifar10"], CNN),
        (cnn.Cnn(), cnn.PAPER["svhn"], CNN),
        (resnet.ResNet(batch_size=4), resnet.PAPER, RESNET),
    ],
    ids=["cnn on cifar10", "cnn on svhn", "resnet"],
)
def test_the_scale_of_the_paper_trains_two_batches(architecture, scale, config):
    reported = []
    found = network(architecture, scale)
    error = found.train(config, 0, lambda **reached: reported.append(reached), rows=8, epochs=1)
    assert 0.0 <= error <= 1.0
    assert not reported, "the last epoch is the loss of the trial, not a report"
    assert set(architecture.space) == set(config)


def test_a_training_reports_every_epoch_but_the_last():
    reported = []
    small = network(cnn.Cnn((4, 32), (4, 128)), cnn.SMALL)
    small.train(CNN, 0, lambda **reached: reported.append(reached["epochs"]), rows=8, epochs=4)
    assert reported == [1, 2, 3]


def test_the_small_network_learns_what_is_easy_and_repeats_itself():
    small = network(cnn.Cnn((4, 32), (4, 128)), cnn.SMALL)
    assert small.train(CNN, 0, None, rows=8, epochs=8) == small.train(CNN, 0, None, rows=8, epochs=8) == 0.0
    assert small.test(CNN) == 0.0


def test_the_answers_of_the_residual_network_are_measured_on_the_validation_images():
    small = network(resnet.ResNet(1, 8, 4, 2), resnet.SMALL)
    small._test = None
    assert 0.0 <= small.test(RESNET) <= 1.0


def test_the_residual_network_of_the_paper_has_the_published_number_of_weights():
    model = resnet.ResNet().build(RESNET, side=32)
    assert sum(p.numel() for p in model.parameters()) == pytest.approx(
        0.46e6, rel=0.02
    )  # He et al. 2016, table 6
    assert model(torch.zeros(2, 3, 32, 32)).shape == (2, 10)


def test_the_learning_rate_drops_after_the_stated_shares_of_the_epochs():
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 2))
    optimizer = torch.optim.SGD(model.parameters(), 1.0)
    rates = []
    plan = training.Plan(4, 2, drops=(0.5, 0.75), drop_factor=0.1)
    data = torch.zeros(4, 3, 2, 2), torch.zeros(4, dtype=torch.int64)
    rng = torch.Generator().manual_seed(0)
    training.fit(
        model, optimizer, data, plan, rng, lambda epoch: rates.append(optimizer.param_groups[0]["lr"])
    )
    assert rates == pytest.approx([1.0, 0.1, 0.01, 0.01])


def test_augmented_images_are_shifted_and_mirrored_copies():
    x = torch.arange(1.0, 10.0).reshape(1, 1, 3, 3).repeat(40, 1, 1, 1)
    padded = [torch.nn.functional.pad(image, (1,) * 4)[0, 0] for image in (x[:1], x[:1].flip(3))]
    possible = {
        tuple(p[i : i + 3, j : j + 3].ravel().tolist()) for p in padded for i in range(3) for j in range(3)
    }
    found = {
        tuple(image.ravel().tolist()) for image in training.augmented(x, 1, torch.Generator().manual_seed(0))
    }
    assert found <= possible
    assert len(found) > 9, "both mirrored and not"


def test_another_network_is_another_setting_but_not_another_folder(tmp_path):
    deep, wide = (
        Setting(resnet.ResNet(**size), "cifar10", resnet.SMALL) for size in ({"blocks": 9}, {"width": 32})
    )
    assert deep.describe() != wide.describe()
    assert deep.describe() == replace(deep, directory=tmp_path).describe()


def test_small_images_are_averages():
    x, labels = training.tensors(stand_in(2), 16)
    full, _ = training.tensors(stand_in(2), 32)
    assert x.shape == (2, 3, 16, 16)
    assert labels.tolist() == [0, 1]
    assert x[0, 0, 0, 0] == pytest.approx(full[0, 0, :2, :2].mean().item(), abs=1e-5)
