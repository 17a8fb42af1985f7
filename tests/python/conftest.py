import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))   # for `import ranks`, here and in the ranks' own processes
