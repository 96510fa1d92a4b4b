"""Jobs of NVIDIA's TAO SDK and AutoML, run by tao-slurm.

`TaoSlurmSDK` is the object that `AutoMLRunner(sdk=…)`, `JobMonitor`, `ActionWorkflow` and programs written for TAO's `SlurmSDK` use. It
needs the package `nvidia-tao-sdk`: `pip install 'tao-slurm[tao]'`.
"""

try:
    import tao_sdk as _tao_sdk  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "tao_sdk":
        raise
    raise ModuleNotFoundError("tao_slurm.tao needs nvidia-tao-sdk: pip install 'tao-slurm[tao]'", name="tao_sdk") from None

from tao_slurm.tao.sdk import TaoSlurmSDK
from tao_slurm.tao.watching import JobHandler

__all__ = ["TaoSlurmSDK", "JobHandler"]
