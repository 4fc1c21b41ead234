import HoldfastStore

/// A rule or setting of a relationship in a class's declaration, such as ``required`` or ``count(_:)-(ClosedRange<Int>)``.
public struct RelationshipOption {
  /// Changes the relationship's description.
  let apply: (inout RelationshipDescription) -> Void

  /// An object can't be saved without a destination. For to-many relationships, use ``count(_:)-(PartialRangeFrom<Int>)``: as in Core Data,
  /// those that are only required can be empty.
  public static var required: RelationshipOption { RelationshipOption { $0.isOptional = false } }

  /// A number of destinations in a range, for to-many relationships. If the range contains 0, there may also be none.
  public static func count(_ range: ClosedRange<Int>) -> RelationshipOption {
    RelationshipOption {
      ($0.minCount, $0.maxCount) = (range.lowerBound, range.upperBound)
      $0.isOptional = range.lowerBound == 0
    }
  }

  /// At least a number of destinations, for to-many relationships. Another option can set the maximum.
  public static func count(_ range: PartialRangeFrom<Int>) -> RelationshipOption {
    RelationshipOption {
      $0.minCount = range.lowerBound
      $0.isOptional = range.lowerBound == 0
    }
  }

  /// A relationship that is kept in memory only; see ``/HoldfastStore/RelationshipDescription/isTransient``. Its inverse is transient too.
  public static var transient: RelationshipOption { RelationshipOption { $0.isTransient = true } }

  /// The name in the previous version of the model.
  public static func renamed(from name: String) -> RelationshipOption { RelationshipOption { $0.renamingIdentifier = name } }

  /// Text added to the version hash, to distinguish versions that are otherwise equal.
  public static func versionHashModifier(_ text: String) -> RelationshipOption { RelationshipOption { $0.versionHashModifier = text } }

  /// Any setting of the relationship's description, such as `.setting(\.maxCount, 3)`.
  public static func setting<Value>(_ keyPath: WritableKeyPath<RelationshipDescription, Value>, _ value: Value) -> RelationshipOption {
    RelationshipOption { $0[keyPath: keyPath] = value }
  }

  /// Custom text by key.
  public static func userInfo(_ userInfo: [String: String]) -> RelationshipOption { RelationshipOption { $0.userInfo = userInfo } }
}
