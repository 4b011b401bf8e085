"""Weighted linear least squares, small enough to need no library."""
import math


def solve(matrix, right):
    """The solution of a square system, by elimination with pivots."""
    size = len(right)
    rows = [list(matrix[i]) + [right[i]] for i in range(size)]
    for i in range(size):
        pivot = max(range(i, size), key=lambda k: abs(rows[k][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for k in range(size):
            if k != i:
                factor = rows[k][i] / rows[i][i]
                rows[k] = [a - factor * b for a, b in zip(rows[k], rows[i])]
    return [rows[i][size] / rows[i][i] for i in range(size)]


def spreads(matrix):
    """Standard deviations of unknowns from the matrix of their normal equations."""
    size = len(matrix)
    return [math.sqrt(solve(matrix, [float(i == k) for k in range(size)])[i]) for i in range(size)]


def relative_fit(rows, values):
    """Coefficients with the least sum of squares of relative errors of `values`, a standard deviation of each in percent
    (from what the errors leave), and the relative errors."""
    size = len(rows[0])
    scaled = [[x / value for x in row] for row, value in zip(rows, values)]
    matrix = [[sum(row[i] * row[k] for row in scaled) for k in range(size)] for i in range(size)]
    found = solve(matrix, [sum(row[i] for row in scaled) for i in range(size)])
    errors = [sum(a * b for a, b in zip(found, row)) - 1 for row in scaled]
    free = len(values) - size
    scatter = math.sqrt(sum(e * e for e in errors) / free) if free > 0 else 0.0
    return found, [100 * scatter * s / abs(x) for s, x in zip(spreads(matrix), found)], errors


def robust_relative_fit(rows, values, weights, floor=0.05):
    """The same with weights, where relative errors beyond `floor` count by their size instead of its square."""
    size = len(rows[0])
    scaled = [[x / value for x in row] for row, value in zip(rows, values)]
    now = list(weights)
    for _ in range(60):
        matrix = [[sum(w * row[i] * row[k] for w, row in zip(now, scaled)) for k in range(size)] for i in range(size)]
        found = solve(matrix, [sum(w * row[i] for w, row in zip(now, scaled)) for i in range(size)])
        errors = [sum(a * b for a, b in zip(found, row)) - 1 for row in scaled]
        now = [w / max(abs(e), floor) for w, e in zip(weights, errors)]
    scatter = math.sqrt(sum(w * e * e for w, e in zip(now, errors)) / (len(values) - size))
    return found, [100 * scatter * s / abs(x) for s, x in zip(spreads(matrix), found)], errors
