#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension StoreValue {
  /// Whether two values are of the same case and equal.
  ///
  /// Text is compared by its UTF-8 bytes, as queries and stores compare it. Two strings that differ only in their Unicode normalization are
  /// different values, although Swift's `==` treats them as equal. Numbers are equal as in Swift: 0 equals -0, and a floating-point NaN
  /// differs from itself. A decimal NaN doesn't, as in Foundation. Queries compare both as in ``ValueComparison``.
  public static func == (a: StoreValue, b: StoreValue) -> Bool {
    switch a {
    case .null: if case .null = b { true } else { false }
    case .bool(let x): if case .bool(let y) = b { x == y } else { false }
    case .int16(let x): if case .int16(let y) = b { x == y } else { false }
    case .int32(let x): if case .int32(let y) = b { x == y } else { false }
    case .int64(let x): if case .int64(let y) = b { x == y } else { false }
    case .float(let x): if case .float(let y) = b { x == y } else { false }
    case .double(let x): if case .double(let y) = b { x == y } else { false }
    case .date(let x): if case .date(let y) = b { x == y } else { false }
    case .decimal(let x): if case .decimal(let y) = b { x == y } else { false }
    case .uuid(let x): if case .uuid(let y) = b { x == y } else { false }
    case .externalData(let x): if case .externalData(let y) = b { x == y } else { false }
    case .data(let x): if case .data(let y) = b { x == y } else { false }
    case .objectID(let x): if case .objectID(let y) = b { x == y } else { false }
    case .string(let x): if case .string(let y) = b { x.utf8.elementsEqual(y.utf8) } else { false }
    case .uri(let x): if case .uri(let y) = b { x.utf8.elementsEqual(y.utf8) } else { false }
    }
  }
}
