"""The command line of gameagent, for a checkout: `python run.py --help`. Installed, it is the command `gameagent`.

python run.py                                  train catch by PPO
python run.py +experiment=catch_demo           collect, clone, improve, evaluate, export
python run.py job=evaluate job.policy=RUN      score what a run folder holds
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "src"))

from gameagent.config import main

if __name__ == "__main__":
    main()
