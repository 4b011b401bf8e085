#!/bin/bash
GPUS_PER_NODE=8
NUM_LAYERS=12
ARGS=(
    --num-layers $NUM_LAYERS
    --hidden-size 768
    --num-attention-heads 12
    --seq-length 128
    --max-position-embeddings 1024
    --micro-batch-size 2
    --global-batch-size $((2*8*4))
    --tensor-model-parallel-size 2
    --vocab-size 50257
    --bf16
)
torchrun --nproc_per_node $GPUS_PER_NODE pretrain_gpt.py ${ARGS[@]} --lr 1e-4
