// Kinds of text files that words in them tell.
#include <array>

#include "sim/recognition/recognise.h"

namespace ridgeline::recognition {
namespace {

struct Words {
  std::string_view kind;
  std::array<std::string_view, 3>
      all;                       ///< each of them is in the text; "^" in front: at its begin; empty ones are not asked
  std::string_view ending = {};  ///< and the file's name ends so
};

// Those that say more in front.
constexpr std::array kWords{
    Words{"git-lfs", {"^version https://git-lfs.github.com/spec/"}},
    Words{"memory-page", {"add_local_files(", "\"base64\":"}},
    Words{"page", {"^<!doctype html", "<title>Ridgeline</title>"}},
    Words{"web-page", {"^<!doctype html"}},
    Words{"web-page", {"^<!DOCTYPE html"}},
    Words{"web-page", {"^<!DOCTYPE HTML"}},
    Words{"web-page", {"^<html"}},
    Words{"web-page", {"^<HTML"}},
    Words{"web-page", {"^<head"}},
    Words{"image", {"<svg", "xmlns"}, ".svg"},
    Words{"xml", {"^<?xml"}},
    Words{"out-of-memory", {"out of memory", "Tried to allocate"}},
    Words{"memory-summary", {"PyTorch CUDA memory summary"}},
    Words{"memory-summary", {"Allocated memory", "Cur Usage"}},
    Words{"memory-stats", {"allocated_bytes.all.current"}},
    Words{"history", {"^action,addr,size,stream"}},
    Words{"nsys-csv", {"Time (%)", "Total Time (ns)"}},
    Words{"nsys-csv", {"Start (ns)", "Duration (ns)"}},
    Words{"nsys-csv", {"Time(%)", "Total Time (ns)"}},
    Words{"ncu-csv", {"\"ID\",\"Process ID\""}},
    Words{"ncu-csv", {"\"Kernel Name\"", "\"Metric Name\""}},
    Words{"ncu-csv", {"Kernel Name", "__throughput"}},
    Words{"nvidia-smi", {"NVIDIA-SMI", "Driver Version"}},
    Words{"nvidia-smi", {"GPU0", "CPU Affinity"}},
    Words{"gpgpusim", {"-gpgpu_n_clusters"}},
    Words{"gpgpusim", {"-gpgpu_clock_domains"}},
    Words{"genz", {"Flops", "Memory_BW", "Memory_size"}, ".py"},
    Words{"tokenizer", {"^#version: 0."}},
    Words{"plain-out-of-memory", {"CUDA out of memory"}},
    Words{"plain-out-of-memory", {"CUDA error: out of memory"}},
    Words{"plain-out-of-memory", {"RESOURCE_EXHAUSTED"}},
    Words{"python", {"import "}, ".py"},
    Words{"python", {"def "}, ".py"},
    Words{"python", {"^#!/usr/bin/env python"}},
    Words{"script", {"^#!"}},
    Words{"server-error", {"^Entry not found"}},
    Words{"server-error", {"^404: Not Found"}},
    Words{"server-error", {"^Not Found"}},
    Words{"server-error", {"^Access to model"}},
    Words{"server-error", {"^Invalid "}},
    Words{"server-error", {"^Repository Not Found"}},
    Words{"log", {"Traceback (most recent call last)"}},
    Words{"log", {}, ".log"},
    Words{"log", {}, ".out"},
    Words{"log", {}, ".err"},
    Words{"table", {}, ".csv"},
    Words{"table", {}, ".tsv"},
    Words{"text", {}, ".txt"},
    Words{"text", {}, ".md"},
};

bool holds(const Sample& sample, std::string_view words) {
  if (words.empty()) return true;
  if (words.front() == '^') {
    const std::size_t first = sample.head.find_first_not_of(" \t\r\n");
    return first != std::string_view::npos && sample.head.substr(first).starts_with(words.substr(1));
  }
  return sample.head.find(words) != std::string_view::npos || sample.tail.find(words) != std::string_view::npos;
}

}  // namespace

std::string_view kind_by_words(const Sample& sample) {
  for (const Words& words : kWords) {
    if (!words.ending.empty() && sample.ending != words.ending) continue;
    bool all = true;
    for (const std::string_view one : words.all) all = all && holds(sample, one);
    if (all) return words.kind;
  }
  return "";
}

}  // namespace ridgeline::recognition
