import Holdfast

/// A model with transient relationships of every kind, beside stored ones, and classes for it.
enum Web {
  static let node = EntityDescription(
    "Node", attributes: [AttributeDescription("name", .string)],
    relationships: [
      .toOne("parent", to: "Node", inverse: "children"), .toMany("children", to: "Node", inverse: "parent"),
      .toOne("pick", to: "Node", inverse: "pickedBy", isTransient: true),
      .toMany("pickedBy", to: "Node", inverse: "pick", isTransient: true),
      .toOne("mate", to: "Node", inverse: "mate", isTransient: true),
      .toOne("next", to: "Node", inverse: "previous", isTransient: true),
      .toOne("previous", to: "Node", inverse: "next", isTransient: true),
      .toMany("peers", to: "Node", inverse: "peers", isTransient: true),
      .toMany("queue", to: "Node", inverse: "queuedIn", isTransient: true, isOrdered: true),
      .toMany("queuedIn", to: "Node", inverse: "queue", isTransient: true),
      .toMany("seen", to: "Node", inverse: nil, isTransient: true), .toOne("last", to: "Node", inverse: nil, isTransient: true),
      .toMany("held", to: "Leaf", inverse: "holder", isTransient: true),
    ])
  static let leaf = EntityDescription(
    "Leaf", superentity: "Node", attributes: [AttributeDescription("size", .integer16, isOptional: true)],
    relationships: [
      .toMany("things", to: "Leaf", inverse: "things"), .toOne("holder", to: "Node", inverse: "held", isTransient: true),
    ])

  static let model: ManagedObjectModel = {
    do { return try ManagedObjectModel(entities: [node, leaf]) } catch { fatalError("\(error)") }
  }()

  static let classes: [ManagedObject.Type] = [Node.self, Leaf.self]
}

class Node: ManagedObject {
  enum Slot {
    static let name: SlotIndex = 0, parent: SlotIndex = 1
    static let children = 0
    static let held = 0, last = 1, mate = 2, next = 3, peers = 4, pick = 5, pickedBy = 6, previous = 7, queue = 8, queuedIn = 9, seen = 10
  }
  override class var entityName: String { "Node" }
  var name: String {
    get { self[Slot.name] }
    set { self[Slot.name] = newValue }
  }
  var parent: Node? {
    get { toOne(Slot.parent) }
    set { setToOne(Slot.parent, newValue) }
  }
  var children: ToMany<Node> { toMany(Slot.children) }
  var pick: Node? {
    get { transientToOne(Slot.pick) }
    set { setTransientToOne(Slot.pick, newValue) }
  }
  var mate: Node? {
    get { transientToOne(Slot.mate) }
    set { setTransientToOne(Slot.mate, newValue) }
  }
  var next: Node? {
    get { transientToOne(Slot.next) }
    set { setTransientToOne(Slot.next, newValue) }
  }
  var previous: Node? {
    get { transientToOne(Slot.previous) }
    set { setTransientToOne(Slot.previous, newValue) }
  }
  var last: Node? {
    get { transientToOne(Slot.last) }
    set { setTransientToOne(Slot.last, newValue) }
  }
  var pickedBy: ToMany<Node> { transientToMany(Slot.pickedBy) }
  var peers: ToMany<Node> { transientToMany(Slot.peers) }
  var queue: OrderedToMany<Node> { transientOrdered(Slot.queue) }
  var queuedIn: ToMany<Node> { transientToMany(Slot.queuedIn) }
  var seen: ToMany<Node> { transientToMany(Slot.seen) }
  var held: ToMany<Leaf> { transientToMany(Slot.held) }

  override class var properties: [PropertyBinding] {
    [
      .attribute("name", \Node.name, slot: Slot.name), .toOne("parent", \Node.parent, slot: Slot.parent),
      .toMany("children", \Node.children, index: Slot.children), .transientToOne("pick", \Node.pick, index: Slot.pick),
      .transientToOne("mate", \Node.mate, index: Slot.mate), .transientToOne("next", \Node.next, index: Slot.next),
      .transientToOne("previous", \Node.previous, index: Slot.previous), .transientToOne("last", \Node.last, index: Slot.last),
      .transientToMany("pickedBy", \Node.pickedBy, index: Slot.pickedBy), .transientToMany("peers", \Node.peers, index: Slot.peers),
      .transientToMany("queue", \Node.queue, index: Slot.queue), .transientToMany("queuedIn", \Node.queuedIn, index: Slot.queuedIn),
      .transientToMany("seen", \Node.seen, index: Slot.seen), .transientToMany("held", \Node.held, index: Slot.held),
    ]
  }
}

final class Leaf: Node {
  enum LeafSlot {
    static let size = 2
    static let things = 1
    static let holder = 11
  }
  override class var entityName: String { "Leaf" }
  var things: ToMany<Leaf> { toMany(LeafSlot.things) }
  var holder: Node? {
    get { transientToOne(LeafSlot.holder) }
    set { setTransientToOne(LeafSlot.holder, newValue) }
  }
  override class var properties: [PropertyBinding] {
    super.properties + [
      .toMany("things", \Leaf.things, index: LeafSlot.things), .transientToOne("holder", \Leaf.holder, index: LeafSlot.holder),
    ]
  }
}

extension ManagedObjectContext {
  @discardableResult func node(_ name: String) -> Node {
    let node = insert(Node.self)
    node.name = name
    return node
  }

  @discardableResult func leaf(_ name: String) -> Leaf {
    let leaf = insert(Leaf.self)
    leaf.name = name
    return leaf
  }

  func node(named name: String) throws -> Node? { try one(Node.self) { $0.name == name } }
}
