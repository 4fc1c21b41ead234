/// The scalars that folding changes, with their results: the unpacked form of the generated tables.
struct FoldingMappings {
  /// A mapping: a scalar, and the position of its result in the pool.
  struct Entry {
    var scalar: UInt32
    /// The offset of the first byte, shifted left by four, plus the number of bytes (at most 15). Never 0.
    var place: UInt32
  }

  /// The mappings in any order. Duplicate scalars have equal results.
  private(set) var entries: [Entry] = []
  /// The UTF-8 of all results. The first byte is unused, so that no position is 0.
  private(set) var pool: [UInt8] = [0]

  /// The folded UTF-8 of an entry's scalar.
  func result(of entry: Entry) -> ArraySlice<UInt8> {
    let start = Int(entry.place >> 4)
    return pool[start..<start + Int(entry.place & 15)]
  }

  /// Adds a mapping from a scalar to the bytes appended to the pool since `start`.
  private mutating func add(_ scalar: UInt32, resultFrom start: Int) {
    entries.append(Entry(scalar: scalar, place: UInt32(start << 4 | (pool.count - start))))
  }
}

extension FoldingMappings {
  /// The generated case foldings.
  static var caseInsensitive: FoldingMappings {
    var mappings = FoldingMappings()
    mappings.add(packed: FoldingTables.caseFoldings)
    return mappings
  }

  /// The generated decompositions and removed marks.
  static var diacriticInsensitive: FoldingMappings {
    var mappings = FoldingMappings()
    mappings.add(packed: FoldingTables.diacriticFoldings)
    let bounds = FoldingTables.removedMarks
    for index in stride(from: 0, to: bounds.count, by: 2) {
      for scalar in bounds[index]...bounds[index + 1] { mappings.add(scalar, resultFrom: mappings.pool.count) }
    }
    return mappings
  }

  /// The combined folding of each scalar that one of the two foldings changes.
  static var caseAndDiacriticInsensitive: FoldingMappings {
    let scalars = (caseInsensitive.entries + diacriticInsensitive.entries).map(\.scalar)
    // All scalars are folded together, one per line. A line break folds to itself, and nothing else folds to one.
    var lines: [UInt8] = []
    for scalar in scalars {
      appendUTF8(of: scalar, to: &lines)
      lines.append(UInt8(ascii: "\n"))
    }
    var mappings = FoldingMappings()
    for (scalar, result) in zip(scalars, foldedUntilStable(lines).split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)) {
      let start = mappings.pool.count
      mappings.pool.append(contentsOf: result)
      mappings.add(scalar, resultFrom: start)
    }
    return mappings
  }

  private mutating func add(packed list: [UInt32]) {
    var position = 0
    while position < list.count {
      let start = pool.count
      let end = position + 1 + Int(list[position] >> 24)
      for index in position + 1..<end { appendUTF8(of: list[index], to: &pool) }
      add(list[position] & 0xFF_FFFF, resultFrom: start)
      position = end
    }
  }
}

/// Folds case, then diacritics, repeatedly until nothing changes.
private func foldedUntilStable(_ text: [UInt8]) -> [UInt8] {
  let folded = TextFolding.diacriticInsensitive.folded(TextFolding.caseInsensitive.folded(text))
  return folded == text ? text : foldedUntilStable(folded)
}

extension TextFolding {
  fileprivate func folded(_ text: [UInt8]) -> [UInt8] {
    var output: [UInt8] = []
    text.withUnsafeBytes { fold($0, into: &output) }
    return output
  }
}

/// Appends the UTF-8 of a scalar from the generated tables, which contain only valid scalars.
private func appendUTF8(of scalar: UInt32, to bytes: inout [UInt8]) {
  guard let scalar = Unicode.Scalar(scalar) else { return }
  bytes.append(contentsOf: scalar.utf8)
}
