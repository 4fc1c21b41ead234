/// Inserts rows without creating objects. Contexts aren't notified. No store of this package answers it yet.
///
/// Properties that aren't listed have the model's default values.
public struct BatchInsertRequest: StoreRequest {
  /// The index of the concrete entity.
  public var entity: EntityIndex
  /// The slots that have values.
  public var slots: [SlotIndex]
  /// The values of each row, one per slot in ``slots``.
  public var rows: [[StoreValue]]
  /// Whether the answer contains the object IDs.
  public var returnsObjectIDs: Bool
  /// The ID, author and time of the change; nil if unknown.
  public var origin: SaveOrigin?

  /// Creates a request.
  public init(
    entity: EntityIndex, slots: [SlotIndex], rows: [[StoreValue]], returnsObjectIDs: Bool = false, origin: SaveOrigin? = nil
  ) {
    self.entity = entity
    self.slots = slots
    self.rows = rows
    self.returnsObjectIDs = returnsObjectIDs
    self.origin = origin
  }

  /// The number of rows, or their IDs.
  public typealias Answer = BatchResult
  /// A verb phrase for errors.
  public static var operation: String { "insert rows in a batch" }
}

/// Changes values in the rows that a plan selects, without loading objects. Contexts aren't notified. No store of this package answers it
/// yet.
public struct BatchUpdateRequest: StoreRequest {
  /// A slot and its new value.
  public struct Assignment: Sendable, Hashable, Codable {
    /// The slot.
    public var slot: SlotIndex
    /// The new value. It is computed from the values before the request.
    public var value: ValueExpression

    /// Creates an assignment.
    public init(slot: SlotIndex, value: ValueExpression) {
      self.slot = slot
      self.value = value
    }
  }

  /// Selects the rows. Its output is ignored.
  public var plan: FetchPlan
  /// The new values. Each slot occurs once.
  public var assignments: [Assignment]
  /// Whether the answer contains the object IDs.
  public var returnsObjectIDs: Bool
  /// The ID, author and time of the change; nil if unknown.
  public var origin: SaveOrigin?

  /// Creates a request.
  public init(plan: FetchPlan, assignments: [Assignment], returnsObjectIDs: Bool = false, origin: SaveOrigin? = nil) {
    self.plan = plan
    self.assignments = assignments
    self.returnsObjectIDs = returnsObjectIDs
    self.origin = origin
  }

  /// The number of rows, or their IDs.
  public typealias Answer = BatchResult
  /// A verb phrase for errors.
  public static var operation: String { "update rows in a batch" }
}

/// Deletes the rows that a plan selects, without loading objects. Contexts aren't notified. No store of this package answers
/// it yet.
///
/// References to the deleted rows are severed as in ``SaveRequest/EntityChanges/deleted``. Other delete rules aren't applied.
public struct BatchDeleteRequest: StoreRequest {
  /// Selects the rows. Its output is ignored.
  public var plan: FetchPlan
  /// Whether the answer contains the object IDs.
  public var returnsObjectIDs: Bool
  /// The ID, author and time of the change; nil if unknown.
  public var origin: SaveOrigin?

  /// Creates a request.
  public init(plan: FetchPlan, returnsObjectIDs: Bool = false, origin: SaveOrigin? = nil) {
    self.plan = plan
    self.returnsObjectIDs = returnsObjectIDs
    self.origin = origin
  }

  /// The number of rows, or their IDs.
  public typealias Answer = BatchResult
  /// A verb phrase for errors.
  public static var operation: String { "delete rows in a batch" }
}

/// The value that a batch update assigns to a slot.
@nonexhaustive public indirect enum ValueExpression: Sendable, Hashable, Codable {
  /// A constant.
  case constant(StoreValue)
  /// The value in a slot of the same row, before the request.
  case slot(SlotIndex)
  /// A sum. Nil if an operand is nil.
  case sum(ValueExpression, ValueExpression)
  /// A difference. Nil if an operand is nil.
  case difference(ValueExpression, ValueExpression)
  /// A product. Nil if an operand is nil.
  case product(ValueExpression, ValueExpression)
  /// A quotient. Of whole numbers, it is rounded toward zero. Nil if an operand is nil, or if the divisor is 0.
  case quotient(ValueExpression, ValueExpression)
}

/// The result of a batch request.
public struct BatchResult: Sendable, Hashable, Codable {
  /// The number of rows that were inserted, changed or deleted.
  public var rowCount: Int
  /// The IDs of these rows, in any order; nil if they weren't requested.
  ///
  /// Contexts show the changes after they have merged these IDs with `mergeChanges(from:)`. Rows whose references to deleted rows were
  /// cleared aren't counted, and needn't be merged.
  public var objectIDs: [ManagedObjectID]?
  /// The state after the change; nil if the store has no tokens.
  public var state: StateToken?

  /// Creates a result.
  public init(rowCount: Int, objectIDs: [ManagedObjectID]? = nil, state: StateToken? = nil) {
    self.rowCount = rowCount
    self.objectIDs = objectIDs
    self.state = state
  }
}
