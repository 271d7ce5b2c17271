"""The metrics of a run in MLflow: where ``MLFLOW_TRACKING_URI`` says, else in ``RUN/mlflow.db``."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping

from heterformer.training.flat_options import flat_options
from heterformer.training.options import TrainingOptions
from heterformer.training.run import Run

TAG = "heterformer.run"  # by which a resumed run is found again
LONGEST = 250  # letters of a parameter that every version takes


class Mlflow:
    """Logs into the experiment that the option names; a resumed run goes on in the same place."""

    def __init__(self, run: Run, options: TrainingOptions) -> None:
        from mlflow.tracking import MlflowClient

        logging.getLogger("mlflow").setLevel(logging.WARNING)
        logging.getLogger("alembic").setLevel(logging.WARNING)
        place = os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{run.path.resolve() / 'mlflow.db'}"
        self._client = MlflowClient(tracking_uri=place)
        self._run_id = self._find(run, options) or self._start(run, options)

    def _find(self, run: Run, options: TrainingOptions) -> str | None:
        experiment = self._client.get_experiment_by_name(str(options.mlflow))
        if experiment is None:
            return None
        name = str(run.path.resolve()).replace("'", "")
        runs = self._client.search_runs([experiment.experiment_id], f"tags.`{TAG}` = '{name}'")
        return str(runs[0].info.run_id) if runs else None

    def _start(self, run: Run, options: TrainingOptions) -> str:
        from mlflow.entities import Param

        experiment = self._client.get_experiment_by_name(str(options.mlflow))
        number = experiment.experiment_id if experiment else self._client.create_experiment(options.mlflow)
        name = str(run.path.resolve()).replace("'", "")
        started = self._client.create_run(number, run_name=run.path.name, tags={TAG: name})
        parameters = [Param(n, str(v)[:LONGEST]) for n, v in flat_options(options).items()]
        self._client.log_batch(started.info.run_id, params=parameters)
        return str(started.info.run_id)

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        from mlflow.entities import Metric

        now = int(1000 * time.time())
        self._client.log_batch(self._run_id, [Metric(n, v, now, step) for n, v in numbers.items()])

    def close(self) -> None:
        self._client.set_terminated(self._run_id)
