import ServiceAPI

extension Filter {
  func matches(_ row: Row) -> Bool {
    switch self {
    case .compare(let left, let comparison, let right): comparison.holds(left.value(row), right.value(row))
    case .and(let filters): filters.allSatisfy { $0.matches(row) }
    case .or(let filters): filters.contains { $0.matches(row) }
    case .not(let filter): !filter.matches(row)
    }
  }
}

extension Filter.Operand {
  fileprivate func value(_ row: Row) -> FieldValue {
    switch self {
    case .key: .integer(row.key)
    case .field(let name): row.fields[name] ?? .null
    case .constant(let value): value
    }
  }
}

extension Filter.Comparison {
  fileprivate func holds(_ a: FieldValue, _ b: FieldValue) -> Bool {
    switch self {
    case .equal: a.equals(b)
    case .notEqual: !a.equals(b)
    case .less: a.difference(b).map { $0 < 0 } ?? false
    case .lessOrEqual: a.difference(b).map { $0 <= 0 } ?? false
    case .greater: a.difference(b).map { $0 > 0 } ?? false
    case .greaterOrEqual: a.difference(b).map { $0 >= 0 } ?? false
    case .beginsWith: FieldValue.texts(a, b).map { $0.starts(with: $1) } ?? false
    case .endsWith: FieldValue.texts(a, b).map { $0.reversed().starts(with: $1.reversed()) } ?? false
    case .contains: FieldValue.texts(a, b).map { $1.isEmpty || $0.contains($1) } ?? false
    }
  }
}

extension FieldValue {
  /// Null equals null.
  func equals(_ other: FieldValue) -> Bool {
    if case (.null, .null) = (self, other) { true } else { difference(other) == 0 }
  }

  /// Negative if this value precedes the other one; nil if they can't be compared: null, NaN, or a number and a text.
  fileprivate func difference(_ other: FieldValue) -> Int? {
    if let (a, b) = FieldValue.texts(self, other) { return a == b ? 0 : a.lexicographicallyPrecedes(b) ? -1 : 1 }
    guard let a = number, let b = other.number, !a.isNaN, !b.isNaN else { return nil }
    return a.isLess(than: b) ? -1 : b.isLess(than: a) ? 1 : 0
  }

  /// Texts are compared by their bytes. Swift compares them as a reader does: é equals e with an accent.
  fileprivate static func texts(_ a: FieldValue, _ b: FieldValue) -> ([UInt8], [UInt8])? {
    if case (.text(let a), .text(let b)) = (a, b) { (Array(a.utf8), Array(b.utf8)) } else { nil }
  }

  private var number: Number? {
    switch self {
    case .boolean(let value): .integer(value ? 1 : 0)
    case .integer(let value): .integer(value)
    case .double(let value): .double(value)
    case .null, .text: nil
    }
  }

  /// The place among all values: null, then numbers and texts, then NaN.
  fileprivate var rank: Int {
    if case .null = self { 0 } else if number?.isNaN == true { 2 } else { 1 }
  }
}

/// A number that is compared without rounding.
private enum Number {
  case integer(Int64)
  case double(Double)

  var isNaN: Bool { if case .double(let value) = self { value.isNaN } else { false } }

  func isLess(than other: Number) -> Bool {
    switch (self, other) {
    case (.integer(let a), .integer(let b)): a < b
    case (.double(let a), .double(let b)): a < b
    // Within the range of integers, a is less than b exactly if it is less than b rounded up.
    case (.integer(let a), .double(let b)): b >= 0x1p63 || b > -0x1p63 && a < Int64(b.rounded(.up))
    case (.double(let a), .integer(let b)): a < -0x1p63 || a < 0x1p63 && Int64(a.rounded(.down)) < b
    }
  }
}

extension [Sort] {
  /// Whether a row precedes another one. Ties are in the order of the keys.
  func order(_ a: Row, _ b: Row) -> Bool {
    for sort in self {
      let left = a.fields[sort.field] ?? .null, right = b.fields[sort.field] ?? .null
      let difference = left.rank != right.rank ? left.rank - right.rank : left.difference(right) ?? 0
      if difference != 0 { return (difference < 0) == sort.isAscending }
    }
    return a.key < b.key
  }
}
