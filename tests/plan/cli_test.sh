#!/usr/bin/env bash
# The command `medley plan` from outside: exit statuses, one line on stderr that names the value, clean JSON
# on stdout.
set -uo pipefail
medley=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

expect() {  # expect STATUS TEXT ARGS…: the status, and the text somewhere in the output
  local status=$1 text=$2
  shift 2
  local output actual
  output=$("$medley" plan "$@" 2>&1)
  actual=$?
  if [ "$actual" -ne "$status" ] || [[ "$output" != *"$text"* ]]; then
    echo "FAILED: plan $* gave $actual (expected $status with '$text'):"
    echo "$output" | head -5
    failed=1
  fi
}

expect 0 "on 1024 ranks" --model gpt3-175b --layout dp=16,tp=8,pp=8,sp=on --framework megatron --global-batch 1536
expect 0 '"totals"' --model pythia-70m --layout dp=2 --framework ddp --json -
expect 0 "Example" --help
expect 2 "sp is 4" --model pythia-70m --layout tp=2,sp=4
expect 2 "tp 3" --model pythia-70m --layout tp=3
expect 2 "caffe" --model pythia-70m --framework caffe
expect 2 "no-such-model" --model no-such-model
expect 2 "rank 9" --model pythia-70m --layout dp=2 --rank 9
expect 2 "colour" --model pythia-70m --sweep colour=1:2
expect 0 "on 1 rank:" --model pythia-70m
expect 0 "; 1 micro-batch of" --model pythia-70m
expect 0 "zero=3;" --model pythia-70m --layout dp=8 --framework fsdp2
expect 0 "zero=2;" --model pythia-70m --layout dp=8,reshard_after_forward=off --framework fsdp2
expect 0 "(model FLOPs)" --model pythia-70m --machine dgx-a100
expect 0 "with recomputation)" --model pythia-70m --layout recompute=full --machine dgx-a100
expect 2 "world 8 contradicts dp 4" --model pythia-70m --layout world=8,dp=4
expect 0 "world 8 is not a multiple of tp·pp·cp = 3" --model pythia-70m --layout world=8 --sweep tp=1,3
expect 0 "fastest that fits" --model pythia-70m --layout world=8,gbs=32 --framework megatron --machine dgx-a100 --sweep tp=1:8
expect 0 "most tokens/s/GPU that fits" --model pythia-70m --layout gbs=32 --machine dgx-a100 --sweep dp=1:8
expect 0 "300B tokens: " --model pythia-70m --machine dgx-a100 --tokens 300B
expect 0 '"gpu_hours"' --model pythia-70m --machine dgx-a100 --tokens 1.5T --json -
expect 2 "--tokens needs --machine" --model pythia-70m --tokens 300B
expect 2 "--tokens many" --model pythia-70m --machine dgx-a100 --tokens many

expect 0 "  search " --help
expect 0 "tokens/s/GPU" search --gpus 8 --machine dgx-a100 --model pythia-2.8b --framework megatron --global-batch 32
expect 0 "GPU-hours" search --gpus 8 --machine dgx-a100 --model pythia-2.8b --framework megatron --global-batch 32 --tokens 1T
expect 0 '"layouts"' search --gpus 8 --machine dgx-a100 --model pythia-2.8b --framework fsdp2 --global-batch 32 --json -
expect 1 "no layout of 8 GPUs fits dgx-a100" search --gpus 8 --machine dgx-a100 --model gpt3-175b --framework megatron --global-batch 8
expect 0 "2048 samples a step (assumed, some 4 million tokens" search --gpus 8 --machine dgx-a100 --model pythia-70m

expect 0 "32768" --model pythia-2.8b --layout dp=2,tp=2 --framework megatron --sweep seq=512:32768
expect 0 "refused" --model pythia-70m --sweep tp=1:16
expect 2 "$work/none/x.json" --model pythia-70m --json "$work/none/x.json"

echo '{"model_type": "llama", "hidden_size": 64}' >"$work/config.json"
expect 2 "$work/config.json: num_attention_heads is missing" --model "$work/config.json"
echo '{"model_type": "llamb", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 128,
 "intermediate_size": 128, "max_position_embeddings": 64}' >"$work/unknown.json"
expect 2 "nearest known family is llama" --model "$work/unknown.json"
expect 0 "" --model "$work/unknown.json" --as llama
expect 2 "lamb" --model "$work/unknown.json" --as lamb
expect 2 "config.json" --model pythia-70m --as llama
echo '{"zero_optimization": {"stage": 2}, "bf16": {"enabled": true}}' >"$work/ds.json"
expect 0 "zero=2" --model pythia-70m --layout "$work/ds.json,dp=4" --framework deepspeed
expect 0 "" --model pythia-70m --layout pp=2,gbs=4 --framework megatron --rank all --schedule "$work/schedule.json"
grep -q '"ranks"' "$work/schedule.json" && grep -q '"op": "send"' "$work/schedule.json" || { echo "FAILED: the schedule of all ranks lacks its sends"; failed=1; }

printf 'comm_type,comm_group,comm_group_size,msg_size,stage\nCommType.epoch_end,None,None,0,\nCommType.all_reduce,CommGroup.dp_group,2,12345,step.finish_grad_sync\n' >"$work/list.csv"
expect 1 "breaks off" --model pythia-70m --layout dp=2 --framework megatron --against "$work/list.csv"
printf 'CommType.epoch_end,None,None,0,\n' >>"$work/list.csv"
expect 1 "NOT EXPLAINED" --model pythia-70m --layout dp=2 --framework megatron --against "$work/list.csv"

stderr_lines=$("$medley" plan --model pythia-70m --layout tp=3 2>&1 >/dev/null | wc -l)
[ "$stderr_lines" -eq 1 ] || { echo "FAILED: an error took $stderr_lines lines"; failed=1; }
exit $failed
